#ifndef KVICK_APPS_KVICK_TEXT_PRINTER_H_
#define KVICK_APPS_KVICK_TEXT_PRINTER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/engine.h"
#include "kvick/model.h"

namespace kvick::cli {

// Prints texts to stdout while they are made, each after its prompt. Of a batch the first that is
// not finished streams; what the others have meanwhile is kept until their turn.
class TextPrinter {
 public:
  TextPrinter(const Model& model, std::span<const GenerateRequest> requests);

  // Prints the first prompt.
  void Start() { Flush(); }
  // False once stdout is closed: nobody reads any more.
  bool Append(size_t request_idx, std::string_view text);
  // With the whole text, of which the end may not have been appended.
  void Finish(size_t request_idx, std::string_view text);

 private:
  struct Stream {
    std::string waiting;
    size_t num_appended = 0;  // bytes
    bool is_finished = false;
  };

  // Prints what waits at the head of the line, and of those behind it while it is finished.
  void Flush();

  std::vector<Stream> streams_;
  size_t current_ = 0;
};

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_TEXT_PRINTER_H_
