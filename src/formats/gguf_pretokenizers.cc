#include "formats/gguf_pretokenizers.h"

#include <algorithm>

#include "formats/pretokenizer.h"

namespace kvick {
namespace {

using Patterns = std::vector<std::string>;

constexpr char kContraction[] = R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))";
constexpr char kLetters[] = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
constexpr char kSymbols[] = R"( ?[^\s\p{L}\p{N}]+[\r\n]*)";
constexpr char kSymbolsWithSlash[] = R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)";
constexpr char kWhiteSpace[] = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kAsciiPunctuation[] = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~])";

// The letters of the scripts that have two cases, as of Unicode 12, without those of mathematics.
constexpr char kCasedLetters[] =
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD})"
    R"(\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45})"
    R"(\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
    R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"
    R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139})"
    R"(\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B})"
    R"(\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})"
    R"(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"
    R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})";

std::string AnyOf(const Patterns& patterns) {
  std::string joined;
  for (const std::string& pattern : patterns) {
    joined += (joined.empty() ? "" : "|") + pattern;
  }
  return joined;
}

// Words, numbers, symbols, white space: what the expression of cl100k came to.
std::string Cl100k(const std::string& numbers) {
  return AnyOf({kContraction, kLetters, numbers, kSymbols, kWhiteSpace});
}

// A word may start with capitals; a new word starts where capitals follow small letters.
// `upper` and `lower` match one letter each, `ending` what may follow a word.
struct CaseWords {
  std::string upper, lower, ending;
};

std::string CaseSplit(const CaseWords& words, const std::string& rest) {
  const std::string start = R"([^\r\n\p{L}\p{N}]?)";
  return AnyOf({start + words.upper + "*" + words.lower + "+" + words.ending,
                start + words.upper + "+" + words.lower + "*" + words.ending, rest});
}

// llama.cpp counts a letter that is not of ASCII as capital and small at once.
CaseWords AsciiCase(const std::string& ending) {
  return {R"((?:(?![a-z])\p{L}))", R"((?:(?![A-Z])\p{L}))", ending};
}

// Where the original tells capitals from small letters, llama.cpp sees letters and marks alone.
CaseWords AnyCase(const std::string& ending) {
  return {R"([\p{L}\p{M}])", R"([\p{L}\p{M}])", ending};
}

std::string NumbersSymbolsWhiteSpace(const std::string& numbers, const std::string& symbols) {
  return AnyOf({numbers, symbols, kWhiteSpace});
}

std::string DeepSeek3Words() {
  return AnyOf({std::string(kAsciiPunctuation) + "[A-Za-z]+",
                R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)", R"( ?[\p{P}\p{S}]+[\r\n]*)",
                kWhiteSpace});
}

// White space that is not of ASCII is no character of these ranges to llama.cpp.
constexpr char kOldCjk[] = R"((?:(?!\s)[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}])+)";

Patterns DeepSeekLlm() {
  return {R"([\r\n])",
          R"(\s?[)" + std::string(kCasedLetters) + "]+",
          R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3001}-\x{3002}]+)",
          R"(\s+\z)",
          kOldCjk,
          R"(\p{N}+)"};
}

Patterns DeepSeekCoder() {
  return {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kOldCjk, R"(\p{N})"};
}

// Groups of three digits from the right. What is before a number goes with its first group. Only
// that group looks ahead at the rest, so the cost is linear.
constexpr char kDigitGroups[] =
    R"(\P{N}*+(?:(?<=\p{N})\p{N}{3}|\p{N}{1,3}(?=(?:\p{N}{3})*+(?!\p{N})))?)";

// Cuts a number before each group of three ASCII digits that ends it: at the first group by what is
// ahead, at the others by what is behind.
constexpr char kSuperBpeGroups[] =
    R"((?<![0-9])[0-9]{1,3}(?=(?:[0-9]{3})++(?![0-9]))|(?<=[0-9])[0-9]{3}(?=[0-9]))"
    R"(|[^0-9]+(?=(?:[0-9]{3})++(?![0-9])))";

Patterns Afmoe() {
  return {
      kDigitGroups,
      R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{30FF}\x{FF65}-\x{FF9F})"
      R"(\x{2F00}-\x{2FDF}\x{E40}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})"
      R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)",
      DeepSeek3Words()};
}

Patterns Chameleon() {
  return {R"(<sentinel:[0-9]+>)",    R"(IMGIMG[A-I]{1,4}Z)",   R"([\t\n]|    |  )", R"(\p{N})",
          R"([\p{P}!-/:-@\[-`{-~])", std::string(kGpt2Pattern)};
}

Patterns Jais2() {
  return {AnyOf({kContraction, kLetters, R"(\p{N}{1,3})", kSymbols, R"(\s*[\r\n]+)",
                 R"(\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S))",
                 R"(\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)"})};
}

Patterns KimiK2() {
  const std::string han =
      R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2EBEF})"
      R"(\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}])";
  return {
      AnyOf({han + "+", R"([^\r\n\p{L}\p{N}]?(?:(?!)" + han + R"()\p{L})+)" + kContraction + "?",
             R"(\p{N}{1,3})", kSymbols, kWhiteSpace})};
}

Patterns Youtu() {
  return {
      R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019})"
      R"(\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+)"
      R"(|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)",
      CaseSplit(AnyCase(std::string(kContraction) + "?"),
                NumbersSymbolsWhiteSpace(R"(\p{N})", kSymbolsWithSlash))};
}

// Source: llama.cpp, src/llama-vocab.cpp: what its tokenizer makes of a text, where that differs
// from the tokenizer that the model came with.
std::vector<GgufPreTokenizer> MakeTable() {
  const std::string gpt2(kGpt2Pattern);
  const std::string contraction = std::string(kContraction) + "?";
  const std::string digit = R"(\p{N})", digits = R"(\p{N}{1,3})";
  const std::string poro = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
  const std::string cjk = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)";
  const std::string rest3 = NumbersSymbolsWhiteSpace(digits, kSymbolsWithSlash);
  return {
      {.names = {"default"},
       .patterns = {R"([\p{P}$+<=>^~|]+)", gpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
      {.names = {"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat",
                 "a.x-4.0", "mellum", "modern-bert", "mpt", "olmo", "jais", "trillion",
                 "granite-docling", "exaone4", "jina-v1-en", "jina-v2-code", "roberta-bpe"},
       .patterns = {gpt2}},
      {.names = {"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b",
                 "mellum2"},
       .patterns = {digit, gpt2}},
      {.names = {"falcon"}, .patterns = {R"([\p{P}$+<=>^~|`]+)", gpt2, "[0-9][0-9][0-9]"}},
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                 "lfm2", "jina-v5-nano"},
       .patterns = {Cl100k(digits)},
       .whole_words_first = true,
       .add_bos = true},
      {.names = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, .patterns = {Cl100k(digits)}},
      {.names = {"jais-2"}, .patterns = Jais2()},
      {.names = {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "megrez", "hunyuan",
                 "solar-open", "grok-2"},
       .patterns = {Cl100k(digit)}},
      {.names = {"qwen35"},
       .patterns = {AnyOf({kContraction, R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)", digit,
                           R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)", kWhiteSpace})}},
      {.names = {"minicpm5"}, .patterns = {digits, Cl100k(R"(\p{N}+)")}, .whole_words_first = true},
      {.names = {"laguna"}, .patterns = {R"([^\n]+|\n+)", Cl100k(digit)}},
      {.names = {"ufakzeka"}, .patterns = {AnyOf({kLetters, digit, kSymbols, kWhiteSpace})}},
      {.names = {"seed-coder"},
       .patterns = {AnyOf(
           {kContraction, kLetters, digit, R"( ?[^\s\p{L}\p{N}\r\n]+)", kWhiteSpace})}},
      {.names = {"bailingmoe", "bailingmoe2", "llada-moe"},
       .patterns = {AnyOf(
           {kContraction, kLetters, digit, kSymbols, R"(\s*[\r\n]|\s+(?!\S)|\s+)"})}},
      {.names = {"exaone-moe"},
       .patterns = {AnyOf({kContraction, R"([^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+)",
                           digit, R"( ?[^\s\p{L}\p{N}]+[\r\n/]?)", R"(\s*[\r\n]|\s+(?!\S)|\s+)"})}},
      {.names = {"poro-chat", "bloom", "gpt3-finnish"}, .patterns = {poro}},
      {.names = {"viking"}, .patterns = {poro, digit}},
      {.names = {"tekken"},
       .patterns = {CaseSplit(AsciiCase(""), NumbersSymbolsWhiteSpace(digit, kSymbolsWithSlash))},
       .whole_words_first = true,
       .add_bos = true},
      {.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
       .patterns = {CaseSplit(AsciiCase(contraction), rest3)}},
      {.names = {"granite-embed-multi-97m"},
       .patterns = {CaseSplit(
           {R"((?:(?![a-z])[\p{L}\p{M}]))", R"((?:(?![A-Z])[\p{L}\p{M}]))", contraction}, rest3)},
       .whole_words_first = true},
      {.names = {"tiny_aya", "cohere2moe"},
       .patterns = {kDigitGroups, CaseSplit(AnyCase(contraction), rest3)}},
      {.names = {"kimi-k2"}, .patterns = KimiK2()},
      {.names = {"superbpe"}, .patterns = {R"(\p{N}+)", kSuperBpeGroups}},
      {.names = {"chameleon"}, .patterns = Chameleon(), .add_bos = true},
      {.names = {"deepseek-llm"}, .patterns = DeepSeekLlm()},
      {.names = {"deepseek-coder"}, .patterns = DeepSeekCoder()},
      {.names = {"deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"},
       .patterns = {digits, cjk, DeepSeek3Words()}},
      {.names = {"afmoe"}, .patterns = Afmoe()},
      {.names = {"youtu"}, .patterns = Youtu(), .whole_words_first = true},
  };
}

}  // namespace

const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name) {
  static const auto& table = *new std::vector<GgufPreTokenizer>(MakeTable());
  for (const GgufPreTokenizer& pre : table) {
    if (std::ranges::find(pre.names, name) != pre.names.end()) return &pre;
  }
  return nullptr;
}

}  // namespace kvick
