#ifndef KVICK_PROVE_CHART_H_
#define KVICK_PROVE_CHART_H_

#include <span>
#include <string>
#include <vector>

namespace kvick {

// A size of a drawing, and the space that labels take at its edges. SVG user units.
struct ChartFrame {
  double width = 0, height = 0;
  double left = 0, right = 0, top = 0, bottom = 0;

  double plot_right() const { return width - right; }
  double plot_bottom() const { return height - bottom; }
};

struct Tick {
  double at = 0;  ///< where it stands in the drawing
  std::string label;
};

// Maps values in [low, high] to places [from, to] of a drawing.
class Scale {
 public:
  struct Interval {
    double low = 0, high = 1;
  };

  static Scale Linear(Interval values, Interval places) { return {values, places, kLinear}; }
  // REQUIRES: 0 < low < high.
  static Scale Log(Interval values, Interval places) { return {values, places, kLog}; }

  double operator()(double value) const;

 private:
  enum Kind { kLinear, kLog };
  Scale(Interval values, Interval places, Kind kind)
      : values_(values), places_(places), kind_(kind) {}

  Interval values_, places_;
  Kind kind_;
};

// Round numbers of [0, high], at most `most` steps of 1, 2 or 5 times a power of ten.
std::vector<double> RoundTicks(double high, int most);
// Powers of ten of [low, high].
std::vector<double> DecadeTicks(double low, double high);

// "x,y x,y ...", as polyline takes it. Shapes: xs, ys [N].
std::string Points(std::span<const double> xs, std::span<const double> ys);

// Moves places apart, downwards and then up again, until neighbours are `gap` from each other and
// all are above `lowest`. Their order stays.
void SpreadApart(std::span<double> places, double gap, double lowest);

}  // namespace kvick

#endif  // KVICK_PROVE_CHART_H_
