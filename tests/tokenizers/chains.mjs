// The steps of well-known families of tokenizers, as their tokenizer.json files have them, over the
// vocabularies of vocabularies.mjs.

import { smallCharsmap } from './charsmap.mjs';

const marker = '\u2581';
const split = (regex, behavior = 'Isolated', invert = false) => ({
  type: 'Split', pattern: { Regex: regex }, behavior, invert,
});
const splitString = (string, behavior) => ({
  type: 'Split', pattern: { String: string }, behavior, invert: false,
});
const digits = (individual) => ({ type: 'Digits', individual_digits: individual });
const byteLevel = (useRegex) => ({
  type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: useRegex,
});
const inOrder = (...pretokenizers) => ({ type: 'Sequence', pretokenizers });
const replace = (from, to) => ({ type: 'Replace', pattern: { String: from }, content: to });
const metaspace = (scheme, isSplit) => ({
  type: 'Metaspace', replacement: marker, prepend_scheme: scheme, split: isSplit,
});
const prefixed = (bos) => ({
  type: 'TemplateProcessing',
  single: [{ SpecialToken: { id: bos, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
  pair: [{ SpecialToken: { id: bos, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } },
         { Sequence: { id: 'B', type_id: 1 } }],
  special_tokens: { [bos]: { id: bos, ids: [], tokens: [bos] } },  // record.mjs puts the id
});
const inSequence = (...normalizers) => ({ type: 'Sequence', normalizers });
const markerDecoder = (keepsLeadingSpace) => ({
  type: 'Sequence',
  decoders: [replace(marker, ' '), { type: 'ByteFallback' }, { type: 'Fuse' },
             ...(keepsLeadingSpace ? [] : [{ type: 'Strip', content: ' ', start: 1, stop: 0 }])],
});
const byteLevelPost = { type: 'ByteLevel', add_prefix_space: true, trim_offsets: false, use_regex: true };

const control = (content, flags = {}) => ({
  content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true,
  ...flags,
});
const plain = (content, flags = {}) => control(content, { special: false, ...flags });

const contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const cl100k = (numbers) =>
  contraction + '|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|' + numbers +
  '| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const upper = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]', lower = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]';
const o200k = (ending, numbers) => {
  const start = '[^\\r\\n\\p{L}\\p{N}]?';
  return `${start}${upper}*${lower}+${ending}|${start}${upper}+${lower}*${ending}|${numbers}` +
    '| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
};
const kimi = () => {
  const start = '[^\\r\\n\\p{L}\\p{N}]?', ending = `${contraction}?`;
  const up = upper.slice(0, -1) + '&&[^\\p{Han}]]', low = lower.slice(0, -1) + '&&[^\\p{Han}]]';
  return `[\\p{Han}]+|${start}${up}*${low}+${ending}|${start}${up}+${low}*${ending}|\\p{N}{1,3}` +
    '| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
};
const cased =  // the letters of the scripts that have two cases
  'A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293' +
  '\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c' +
  '\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5' +
  '\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77' +
  '\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59' +
  '\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc' +
  '\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107' +
  '\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139' +
  '\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee' +
  '\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e' +
  '\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\u{10400}-\u{1044f}' +
  '\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}' +
  '\u{118a0}-\u{118df}\u{1e900}-\u{1e943}';
const cjkOld = '[一-龥ࠀ-一가-퟿]+', cjk = '[一-龥぀-ゟ゠-ヿ]+';
const deepSeekWords = (ending) =>
  '[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+' +
  `| ?[\\p{P}\\p{S}]+${ending}|\\s+(?!\\S)|\\s+`;

// What a chain does not name is as in `byteLevelChain` or `markerChain`.
const byteLevelChain = (steps) => ({
  vocabulary: 'byte_level',
  added_tokens: [control('<|endoftext|>')],
  normalizer: null,
  post_processor: byteLevelPost,
  decoder: byteLevelPost,
  ...steps,
  model: {
    dropout: null, unk_token: null, continuing_subword_prefix: '', end_of_word_suffix: '',
    fuse_unk: false, byte_fallback: false, ignore_merges: false, ...steps.model,
  },
});
const markerChain = (steps) => ({
  vocabulary: 'space_markers',
  added_tokens: [control('<unk>'), control('<s>'), control('</s>')],
  normalizer: null,
  pre_tokenizer: null,
  post_processor: prefixed('<s>'),
  ...steps,
  decoder: markerDecoder(steps.keepsLeadingSpace),
  keepsLeadingSpace: undefined,
  model: {
    dropout: null, unk_token: '<unk>', continuing_subword_prefix: null, end_of_word_suffix: null,
    fuse_unk: true, byte_fallback: true, ignore_merges: false, ...steps.model,
  },
});
const unigramChain = (steps) => ({
  vocabulary: 'unigram',
  added_tokens: [control('<unk>'), control('<s>'), control('</s>')],
  normalizer: null,
  pre_tokenizer: metaspace('always', true),
  post_processor: prefixed('<s>'),
  decoder: metaspace('always', true),
  ...steps,
  model: { type: 'Unigram', unk_id: 0, byte_fallback: false, ...steps.model },
});
const replaceRegex = (from, to) => ({ type: 'Replace', pattern: { Regex: from }, content: to });
const precompiled = { type: 'Precompiled', precompiled_charsmap: smallCharsmap };
const prepend = {
  type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: marker }, replace(' ', marker)],
};
const chatml = [control('<|endoftext|>'), control('<|im_start|>'), control('<|im_end|>')];
const qwenTools = ['<tool_call>', '</tool_call>', '<|fim_prefix|>', '<|fim_middle|>', '<|fim_suffix|>'];
const spaceRuns = [24, 16, 8, 4, 3, 2].map((n) => plain(' '.repeat(n), { normalized: true }));
const gemmaRuns = [
  ...['\n\n', '\n\n\n', marker.repeat(2), marker.repeat(3), marker.repeat(4)].map((run) => plain(run)),
  plain('<table>'), plain('</table>'),
];
const gemmaControls = ['<pad>', '<eos>', '<bos>', '<unk>', '<start_of_turn>', '<end_of_turn>'];
const byBos = (bos) => ({
  type: 'Sequence', processors: [{ ...byteLevelPost }, prefixed(bos)],
});
const gemma = (steps) => markerChain({
  added_tokens: gemmaControls.map((token) => control(token)),
  normalizer: replace(' ', marker),
  post_processor: prefixed('<bos>'),
  keepsLeadingSpace: true,
  ...steps,
});
const deepSeekControls = (normalized) =>
  ['<｜begin▁of▁sentence｜>', '<｜end▁of▁sentence｜>'].map((token) => control(token, { normalized }));

export const chains = {
  'gpt-2': byteLevelChain({
    added_tokens: [control('<|endoftext|>', { normalized: true })],
    pre_tokenizer: byteLevel(true),
  }),
  'llama-2': markerChain({ normalizer: prepend }),
  'llama-2-metaspace': markerChain({ pre_tokenizer: metaspace('first', false) }),
  'llama-2-legacy-metaspace': markerChain({ pre_tokenizer: metaspace('always', true) }),
  'llama-3': byteLevelChain({
    added_tokens: ['<|begin_of_text|>', '<|end_of_text|>', '<|eot_id|>', '<|start_header_id|>',
                   '<|end_header_id|>'].map((token) => control(token)),
    pre_tokenizer: inOrder(split(cl100k('\\p{N}{1,3}')), byteLevel(false)),
    post_processor: byBos('<|begin_of_text|>'),
    model: { ignore_merges: true },
  }),
  'llama-4': byteLevelChain({
    added_tokens: [control('<|begin_of_text|>'), control('<|eot|>')],
    pre_tokenizer: inOrder(split(o200k(`${contraction}?`, '\\p{N}{1,3}')), byteLevel(false)),
    post_processor: byBos('<|begin_of_text|>'),
  }),
  'mistral-v0.1': markerChain({ normalizer: prepend }),
  'mistral-v0.3': markerChain({
    added_tokens: ['<unk>', '<s>', '</s>', '[INST]', '[/INST]', '[TOOL_CALLS]', '[AVAILABLE_TOOLS]']
      .map((token) => control(token)),
    pre_tokenizer: metaspace('first', false),
  }),
  'mistral-nemo': byteLevelChain({
    added_tokens: ['<unk>', '<s>', '</s>', '[INST]', '[/INST]'].map((token) => control(token)),
    pre_tokenizer: inOrder(split(o200k('', '\\p{N}')), byteLevel(false)),
    post_processor: prefixed('<s>'),
    model: { ignore_merges: true, continuing_subword_prefix: null, end_of_word_suffix: null },
  }),
  'qwen-2': byteLevelChain({
    added_tokens: chatml, normalizer: { type: 'NFC' },
    pre_tokenizer: inOrder(split(cl100k('\\p{N}')), byteLevel(false)),
  }),
  'qwen-2.5': byteLevelChain({
    added_tokens: [...chatml, ...qwenTools.map((token) => plain(token))],
    normalizer: { type: 'NFC' },
    pre_tokenizer: inOrder(split(cl100k('\\p{N}')), byteLevel(false)),
  }),
  'qwen-3': byteLevelChain({
    added_tokens: [...chatml, ...[...qwenTools, '<think>', '</think>'].map((token) => plain(token))],
    normalizer: { type: 'NFC' },
    pre_tokenizer: inOrder(split(cl100k('\\p{N}')), byteLevel(false)),
  }),
  'qwen-3.5': byteLevelChain({
    added_tokens: chatml, normalizer: { type: 'NFC' },
    pre_tokenizer: inOrder(
      split(contraction + '|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*' +
            '|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+'),
      byteLevel(false)),
  }),
  'gemma-1': gemma({}),
  'gemma-2': gemma({
    added_tokens: [...gemmaControls.map((token) => control(token)), ...gemmaRuns],
    pre_tokenizer: splitString(' ', 'MergedWithPrevious'),
  }),
  'gemma-3': gemma({
    added_tokens: [...gemmaControls, '<start_of_image>'].map((token) => control(token)).concat(gemmaRuns),
    pre_tokenizer: splitString(' ', 'MergedWithPrevious'),
  }),
  t5: unigramChain({
    added_tokens: [control('<unk>'), control('</s>'),
                   ...[0, 1, 2].map((n) => control(`<extra_id_${n}>`, { rstrip: n === 1 }))],
    normalizer: inSequence(precompiled, { type: 'Strip', strip_left: false, strip_right: true },
                           replaceRegex(' {2,}', marker)),
    post_processor: {
      type: 'TemplateProcessing',
      single: [{ Sequence: { id: 'A', type_id: 0 } }, { SpecialToken: { id: '</s>', type_id: 0 } }],
      pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
      special_tokens: { '</s>': { id: '</s>', ids: [], tokens: ['</s>'] } },
    },
  }),
  'xlm-roberta': unigramChain({
    normalizer: inSequence(precompiled, replaceRegex(' {2,}', ' ')),
    pre_tokenizer: inOrder({ type: 'WhitespaceSplit' }, metaspace('always', true)),
  }),
  'llama-unigram': unigramChain({
    normalizer: inSequence({ type: 'Prepend', prepend: marker }, replace(' ', marker)),
    pre_tokenizer: null,
    decoder: markerDecoder(false),
    model: { byte_fallback: true },
  }),
  'phi-3': markerChain({
    added_tokens: [
      control('<unk>'), control('<s>'), plain('</s>', { rstrip: true }), control('<|endoftext|>'),
      ...['<|assistant|>', '<|end|>', '<|user|>', '<|system|>'].map((token) =>
        control(token, { rstrip: true })),
    ],
    normalizer: prepend,
    post_processor: {
      type: 'TemplateProcessing', single: [{ Sequence: { id: 'A', type_id: 0 } }],
      pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
      special_tokens: {},
    },
  }),
  'phi-4': byteLevelChain({
    added_tokens: ['<|endoftext|>', '<|fim_prefix|>', '<|im_start|>', '<|im_end|>', '<|im_sep|>']
      .map((token) => control(token, { lstrip: true, rstrip: true })),
    pre_tokenizer: inOrder(split(cl100k('\\p{N}{1,3}'), 'Removed', true), byteLevel(false)),
  }),
  'phi-4-mini': byteLevelChain({
    added_tokens: [control('<|endoftext|>'),
                   ...['<|assistant|>', '<|end|>', '<|user|>'].map((token) => control(token, { rstrip: true }))],
    pre_tokenizer: inOrder(
      split(o200k(`${contraction}?`, '\\p{N}{1,3}'), 'Removed', true), byteLevel(false)),
  }),
  falcon: byteLevelChain({
    added_tokens: [control('>>TITLE<<'), control('<|endoftext|>')],
    pre_tokenizer: inOrder({ type: 'Punctuation', behavior: 'Contiguous' }, byteLevel(true),
                           digits(false), split('[0-9][0-9][0-9]')),
    post_processor: null,
  }),
  bloom: byteLevelChain({
    added_tokens: ['<unk>', '<s>', '</s>', '<pad>'].map((token) => control(token)),
    pre_tokenizer: inOrder(split(' ?[^(\\s|[.,!?…。，、।۔،])]+'), byteLevel(false)),
  }),
  starcoder2: byteLevelChain({
    added_tokens: ['<|endoftext|>', '<fim_prefix>', '<file_sep>'].map((token) => control(token)),
    pre_tokenizer: inOrder(digits(true), byteLevel(true)),
    post_processor: null,
  }),
  smollm: byteLevelChain({
    added_tokens: chatml, pre_tokenizer: inOrder(digits(true), byteLevel(true)), post_processor: null,
  }),
  olmo: byteLevelChain({
    added_tokens: [control('<|endoftext|>'), control('<|padding|>'), ...spaceRuns,
                   plain('|||IP_ADDRESS|||', { normalized: true })],
    normalizer: { type: 'NFC' },
    pre_tokenizer: byteLevel(true),
    post_processor: {
      type: 'TemplateProcessing',
      single: [{ Sequence: { id: 'A', type_id: 0 } }],
      pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
      special_tokens: {},
    },
  }),
  'olmo-2': byteLevelChain({
    added_tokens: chatml,
    pre_tokenizer: inOrder(split(cl100k('\\p{N}{1,3}'), 'Removed', true), byteLevel(false)),
  }),
  'deepseek-llm': byteLevelChain({
    added_tokens: deepSeekControls(true),
    normalizer: { type: 'Sequence', normalizers: [] },
    pre_tokenizer: inOrder(
      split('[\r\n]'), split(`\\s?[${cased}]+`), split('\\s?[!-/:-~！-／：-～‘-‟　-。]+'),
      split('\\s+$'), split(cjkOld), digits(true), byteLevel(false)),
    post_processor: prefixed('<｜begin▁of▁sentence｜>'),
  }),
  'deepseek-coder': byteLevelChain({
    added_tokens: [...deepSeekControls(true), plain('<｜fim▁hole｜>', { normalized: true }),
                   plain('õ', { normalized: true }), plain('÷', { normalized: true })],
    normalizer: { type: 'Sequence', normalizers: [] },
    pre_tokenizer: inOrder(split('[\r\n]'), split('\\s?\\p{L}+'), split('\\s?\\p{P}+'),
                           split(cjkOld), digits(true), byteLevel(false)),
    post_processor: prefixed('<｜begin▁of▁sentence｜>'),
  }),
  'deepseek-v3': byteLevelChain({
    added_tokens: [...deepSeekControls(false), plain('<｜User｜>'), plain('<｜Assistant｜>')],
    normalizer: { type: 'Sequence', normalizers: [] },
    pre_tokenizer: inOrder(split('\\p{N}{1,3}'), split(cjk),
                           split(deepSeekWords('[\r\n]*|\\s*[\r\n]+')), byteLevel(false)),
    post_processor: byBos('<｜begin▁of▁sentence｜>'),
  }),
  'kimi-k2': byteLevelChain({
    added_tokens: [control('[BOS]'), control('[EOS]'), control('<|im_end|>')],
    pre_tokenizer: inOrder(split(kimi()), byteLevel(false)),
  }),
  llada: byteLevelChain({
    pre_tokenizer: inOrder(
      split("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*" +
            '|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+'),
      byteLevel(false)),
  }),
  laguna: byteLevelChain({
    pre_tokenizer: inOrder(split('(?:\\r?\\n)+(?!\\r?\\n)', 'MergedWithNext'),
                           split(cl100k('\\p{N}')), byteLevel(false)),
  }),
  'command-r7b': byteLevelChain({
    added_tokens: [control('<BOS_TOKEN>'), control('<|END_OF_TURN_TOKEN|>')],
    normalizer: { type: 'NFC' },
    pre_tokenizer: inOrder(split('\\d{1,3}(?=(?:\\d{3})*\\b)'),
                           split(o200k(`${contraction}?`, '\\p{N}{1,3}')), byteLevel(false)),
    post_processor: prefixed('<BOS_TOKEN>'),
  }),
};

// An added token in all combinations of its flags, on these chains.
export const flagChains = ['gpt-2', 'llama-2', 'mistral-v0.3', 'qwen-2'];
export const flagNames = ['lstrip', 'rstrip', 'single_word', 'normalized', 'special'];
export const flagTokens = ['<T>', 'two words', 'caf\u0065\u0301'];
