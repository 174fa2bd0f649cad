#include "prove/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace kvick {

double Scale::operator()(double value) const {
  const auto map = [&](double x) { return kind_ == kLog ? std::log10(x) : x; };
  const double share = (map(value) - map(values_.low)) / (map(values_.high) - map(values_.low));
  return places_.low + share * (places_.high - places_.low);
}

std::vector<double> RoundTicks(double high, int most) {
  KVICK_CHECK(high > 0 && most > 0);
  double step = std::pow(10, std::floor(std::log10(high / most)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (high / (step * factor) > most) continue;
    step *= factor;
    break;
  }
  std::vector<double> ticks;
  for (int i = 0; i * step <= high; ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> DecadeTicks(double low, double high) {
  KVICK_CHECK(low > 0 && low < high);
  std::vector<double> ticks;
  for (double tick = std::pow(10, std::ceil(std::log10(low))); tick <= high; tick *= 10) {
    ticks.push_back(tick);
  }
  return ticks;
}

std::string Points(std::span<const double> xs, std::span<const double> ys) {
  KVICK_CHECK(xs.size() == ys.size());
  std::string points;
  for (size_t i = 0; i < xs.size(); ++i) points += fmt::format("{:.1f},{:.1f} ", xs[i], ys[i]);
  return points;
}

void SpreadApart(std::span<double> places, double gap, double lowest) {
  std::vector<size_t> order(places.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return places[a] < places[b]; });
  for (size_t i = 1; i < order.size(); ++i) {
    places[order[i]] = std::max(places[order[i]], places[order[i - 1]] + gap);
  }
  for (size_t i = order.size(); i-- > 0; lowest = places[order[i]] - gap) {
    places[order[i]] = std::min(places[order[i]], lowest);
  }
}

}  // namespace kvick
