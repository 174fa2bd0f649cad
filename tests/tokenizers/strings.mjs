// 200 strings that tell tokenizers apart. What is hard to see is written with escapes.

const whiteSpaces =
  '\t\n\v\f\r\u001c\u001f\u0085\u00a0\u1680\u180e\u2002\u2003\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff';

const controls = [
  '<s>', '</s>', '<unk>', '<|endoftext|>', '<|im_start|>', '<|im_end|>', '<|assistant|>', '<|end|>',
  '<|begin_of_text|>', '<|eot_id|>', '[INST]', '[/INST]', '<bos>', '<start_of_turn>', '<table>',
  '<think>', '<tool_call>', '>>TITLE<<', '<｜begin▁of▁sentence｜>', '<｜User｜>', '<fim_prefix>',
  '<0x41>', '<|im_end', '|||IP_ADDRESS|||',
];

const words = [
  '', ' ', '  ', 'a', ' a', 'a ', ' a ', 'Hello', 'Hello world', ' Hello world', 'Hello  world',
  'hello Hello HELLO hELLO', 'The quick brown fox jumps over the lazy dog.',
  'the family and the spaces', 'abcabcabc ababab aaaa aaaaaaaa', 'foo_bar __init__ camelCaseWord XMLHttpRequest',
  'ÉCOLE École éCOLE ǅungla straßE', 'naïve café résumé', 'ﬁne ﬂow ofﬁce', 'Ｆｕｌｌ ｗｉｄｔｈ １２３',
  'Ωmega ΑΒΓ αβγ', 'Привет, мир! ПРИВЕТ', 'Zażółć gęślą jaźń', 'İstanbul ı I i̇',
];

const apostrophes = [
  "it's", "IT'S", "don't can't won't", "I'm you're they've we'll he'd", "I'M YOU'RE THEY'VE WE'LL HE'D",
  "'s 't 're 've 'm 'll 'd", "rock'n'roll 'tis ''s", 'it’s don’t', "'\u017f 's", "d'accord l'été",
  "x's'll", "O'Neil's dog's'", "''''", "'re\n've", "a 's b",
];

const numbers = [
  '1', '12', '123', '1234', '12345', '123456', '1234567', '12345678901234567890', '3.14159', '1,234,567.89',
  ' 1 22 333 4444', '0x1F 0b101 1e-10', '٣٤٥ १२३ ๑๒๓', '½ ¼ ² ³ ¹²³', 'Ⅷ ⅷ ① ⑩ ㊿', 'v1.2.3-rc4', 'a1b22c333d4444',
  '2026-11-30T22:14:13Z', '+1 (555) 123-4567', '12٣45', '𝟘𝟙𝟚𝟛',
];

const codes = [
  'int main() { return 0; }', 'for (i = 0; i < 10; ++i) {\n\ta[i] = i * 2;\n}', 'def f(x):\n    return x + 1\n',
  '    if x:\n        y()\n', 'a/b//c\\d', 'http://example.com/a?b=c&d=e#f', 'user@example.com', '#include <vector>',
  '/* comment */ // more', '{"key": [1, 2, {"a": null}]}', 'SELECT * FROM t WHERE a >= 1;', '<div class="x">y</div>',
  '!=== >>= <<= ->* ::', '$HOME/.config ~/.bashrc `ls`', '\\n \\t \\u0041', '--- +++ *** ___ === ~~~', '....,,,;;;:::',
  '(a)[b]{c}<d>', 'x=1;y=2;z=x+y', '\\p{L}+|\\s', 'a\tb\t\tc', '|a|b|\n|-|-|', '%d%s%%', '^a|b~c`d$e',
];

const lines = [
  '\n', '\n\n', '\n\n\n', '\n\n\n\n', '\r\n', '\r\n\r\n', '\r', 'a\nb', 'a\n\nb', 'a \n b', 'a  \n\n  b', ' \n', '\n ', '\t\n', 'a\r\nb',
  'a\n\n\n  b', '   leading', 'trailing   ', 'a   b    c     d', '\t\ttabs', ' \t \t mixed', 'end.\n', '?!\n\n', 'a...\n/b',
  ' '.repeat(15), ' '.repeat(33), '\n'.repeat(9), '\t'.repeat(5), 'a' + ' '.repeat(24) + 'b', '- \n\n - ', 'x \r\n\r\n y',
];

const scripts = [
  '中文', '你好，世界！', '日本語のテキスト', 'カタカナ ひらがな', '한국어 텍스트', '\u1112\u1161\u11ab\u1100\u116e\u11a8', '中文English混排123',
  'שלום עולם', 'مرحبا بالعالم', 'سلام، دنیا۔', 'नमस्ते दुनिया।', 'สวัสดีชาวโลก', 'வணக்கம்', 'ខ្មែរ ລາວ မြန်မာ', 'አማርኛ ᏣᎳᎩ',
  'ㄅㄆㄇ ㄱㄴㄷ', '𠀀𠮷', '\uf900\u2f00', '。、！？「」…', 'Tiếng Việt', 'ქართული ԱԲԳ',
];

const marks = [
  'cafe\u0301', 'e\u0301 e \u0301', 'A\u030a\u0323 A\u0323\u030a', '\u0301', ' \u0301a', 'q\u0307\u0323', '\u1e9b\u0323', '\u212b \u2126 \u212a',
  '\u0958 \u095c', 'n\u0303o man\u0303ana', '\ud55c\u1112\u1161\u11ab', 'a\u0300\u0301\u0302\u0303', '\u0344 \u0340', 'x\u20dd1\u20e3',
];

const pictures = [
  '😀', '😀😀', 'a😀b', '👨‍👩‍👧‍👦', '👍🏽', '🇩🇪🇫🇷', '❤️ ♥', '🏳️‍🌈', '1️⃣', '→ ⇒ ∀x∈ℝ', '€£¥ ₿', '©®™', '𝔘𝔫𝔦', '♪♫', '½½',
];

const edges = [
  '\u0000', 'a\u0000b', '\u0001\u007f', '\u0080\u00ff', '\u07ff\u0800', '\ud7ff\ue000', '\ufffd\ufffe\uffff', '\u{10000}\u{10ffff}',
  '\u00ad\u200d\u200e\u202e', '\u2581', '\u2581a', 'a\u2581b', '\u2581\u2581', ' \u2581 ', '\u2581\u2581\u2581 x', '\u0120 \u010a', '\u00c4\u00a0',
];

const mixtures = [
  controls.slice(0, 8).join(''), controls.slice(8, 16).join(' '), controls.slice(16).join('\n'),
  ...controls.filter((_, index) => index % 2 === 0).map((control) => `a ${control}  b${control}\n`),
  [...whiteSpaces].map((space) => `a${space}b`).join(''), [...whiteSpaces].map((space) => `${space}1`).join(''),
  [...whiteSpaces].join(''), [...whiteSpaces].map((space) => ` ${space} x`).join('.'),
];

export const strings = [
  ...words, ...apostrophes, ...numbers, ...codes, ...lines, ...scripts, ...marks, ...pictures, ...edges, ...mixtures,
];

// Around an added token TOKEN.
export const flagStrings = [
  'TOKEN', 'aTOKENb', 'a TOKEN b', '  TOKEN  ', 'a  TOKEN\n\tb', '\u00a0TOKEN\u3000x', 'TOKENTOKEN', 'TOKEN TOKEN', 'x_TOKEN_y', '1TOKEN2',
  '.TOKEN,', '中TOKEN文', 'e\u0301TOKEN', 'TOKEN\u0301', '(TOKEN)', 'it is TOKEN', ' TOKEN', 'TOKEN ', 'TOKEN\u2581TOKEN', 'a\n\nTOKEN\n\nb',
  'TO TOKEN KEN', "TOKEN's", '\u200bTOKEN\u200d', 'TOKEN a TOKENb TOKEN',
];
