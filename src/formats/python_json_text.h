#ifndef KVICK_FORMATS_PYTHON_JSON_TEXT_H_
#define KVICK_FORMATS_PYTHON_JSON_TEXT_H_

#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

namespace kvick {

// JSON text as a parser of RFC 8259 can read it, where Python's json module wrote the words NaN,
// Infinity and -Infinity for numbers: each word outside of strings appears as a zero of the same
// length, so that positions stay those of the text. Python is what writes the files of a model.
//
// Cost  one more pass over the text, no copy and no allocation
class PythonJsonText {
 public:
  // `text` must outlive it.
  explicit PythonJsonText(std::string_view text);

  // What the parser reads. Valid while the text object is; all iterators share its place.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;

    Iterator(PythonJsonText* text, size_t position) : text_(text), position_(position) {}

    char operator*() const { return text_->At(position_); }
    Iterator& operator++() {
      if (++position_ == text_->word_.end) text_->PassWord();
      return *this;
    }
    bool operator==(const Iterator& other) const { return position_ == other.position_; }

   private:
    PythonJsonText* text_;
    size_t position_;
  };

  Iterator begin() { return {this, 0}; }
  Iterator end() { return {this, text_.size()}; }

  // For the parser's number events: what the zero stands for, nullopt for a number that is itself.
  std::optional<double> TakeWord();

 private:
  struct Word {
    size_t begin, end;
    double value;
  };

  char At(size_t position) const {
    return position < word_.begin ? text_[position] : MaskAt(position);
  }
  char MaskAt(size_t position) const;
  // The next word that begins at `position`, which is not inside a string, or behind it. Begins and
  // ends behind the text where there is none.
  Word FindWord(size_t position) const;
  std::optional<Word> WordAt(size_t position) const;
  void PassWord();

  std::string_view text_;
  Word word_;                     // the next one that iterators come to
  std::optional<double> passed_;  // the last one that they passed, until it is taken
};

}  // namespace kvick

#endif  // KVICK_FORMATS_PYTHON_JSON_TEXT_H_
