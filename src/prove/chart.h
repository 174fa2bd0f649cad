#ifndef KVICK_PROVE_CHART_H_
#define KVICK_PROVE_CHART_H_

#include <span>
#include <string>
#include <vector>

namespace kvick {

// The size of a drawing, and the margins for labels, in SVG user units.
struct ChartFrame {
  double width = 0, height = 0;
  double left = 0, right = 0, top = 0, bottom = 0;

  double plot_right() const { return width - right; }
  double plot_bottom() const { return height - bottom; }
};

struct Tick {
  double at = 0;  ///< position in the drawing
  std::string label;
};

// Maps values in [low, high] to positions [from, to] in a drawing.
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

// "x,y x,y ...", the format of polyline. Shapes: xs, ys [N].
std::string Points(std::span<const double> xs, std::span<const double> ys);

// Moves positions apart, first down and then up, until neighbours are `gap` apart and all are above
// `lowest`. Keeps their order.
void SpreadApart(std::span<double> places, double gap, double lowest);

}  // namespace kvick

#endif  // KVICK_PROVE_CHART_H_
