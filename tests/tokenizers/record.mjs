// Records what the npm package tokenizers makes of the strings, for the chains of steps of
// well-known tokenizers; or checks that what is recorded is what the package says.
//
//   node record.mjs FOLDER            writes FOLDER/*.json
//   node record.mjs FOLDER --check    exit code 1 where a file differs
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import tokenizers from 'tokenizers';

import { chains, flagChains, flagNames, flagTokens } from './chains.mjs';
import { flagStrings, strings } from './strings.mjs';
import { byteLevelVocabulary, spaceMarkerVocabulary, unigramVocabulary } from './vocabularies.mjs';

const vocabularies = {
  byte_level: byteLevelVocabulary(strings, 500),
  space_markers: spaceMarkerVocabulary(strings, 400),
  unigram: unigramVocabulary(strings, 400),
};

// The part of the model that the vocabulary is.
function modelOf({ vocab, merges, scores }) {
  return scores ? { vocab: scores } : { vocab, merges };
}

// Token ids by their pieces.
function idsOf({ vocab, scores }) {
  return vocab ?? Object.fromEntries(scores.map(([piece], id) => [piece, id]));
}

// tokenizer.json without vocabulary and merges, which many chains share.
function buildSteps(chain) {
  const vocab = idsOf(vocabularies[chain.vocabulary]);
  let numTokens = Object.keys(vocab).length;
  const added_tokens = chain.added_tokens.map((token) => ({
    id: vocab[token.content] ?? numTokens++,
    ...token,
  }));
  const steps = {
    version: '1.0', truncation: null, padding: null, added_tokens,
    normalizer: chain.normalizer,
    pre_tokenizer: chain.pre_tokenizer,
    post_processor: chain.post_processor,
    decoder: chain.decoder,
    model: { type: 'BPE', ...chain.model },
  };
  return JSON.parse(JSON.stringify(steps), (key, value) => {
    if (value === null || !Array.isArray(value.tokens)) return value;
    const idOf = (content) => added_tokens.find((token) => token.content === content).id;
    return { ...value, ids: value.tokens.map(idOf) };
  });
}

const load = (chain, steps) =>
  tokenizers.Tokenizer.fromString(
    JSON.stringify({ ...steps, model: { ...steps.model, ...modelOf(vocabularies[chain.vocabulary]) } }));

const encode = async (tokenizer, text) =>
  (await tokenizer.encode(text, null, { addSpecialTokens: true })).getIds();

// Mixes ids as no text would; the same on every run.
function randomIds(numTokens) {
  let state = 12345;
  const next = () => (state = (state * 1103515245 + 12345) % 2147483648) >>> 8;
  return Array.from({ length: 60 }, () => Array.from({ length: 4 }, () => next() % numTokens));
}

// The library puts U+FFFD for bytes that are no UTF-8; kvick hands out the bytes themselves.
const isWhole = ({ text }) => !text.includes('\ufffd');

async function recordChain(chain) {
  const steps = buildSteps(chain);
  const tokenizer = load(chain, steps);
  const decode = async (ids) => ({ ids, text: await tokenizer.decode(ids, true) });
  const encoded = await Promise.all(strings.map((text) => encode(tokenizer, text)));
  const ofTexts = (await Promise.all(encoded.map(decode))).filter(isWhole);
  const ofRandom =
    (await Promise.all(randomIds(tokenizer.getVocabSize()).map(decode))).filter(isWhole);
  const isChanged = ({ ids, text }) => text !== strings[encoded.indexOf(ids)];
  return {
    vocabulary: chain.vocabulary, steps, encoded,
    decoded: [...ofTexts.filter(isChanged), ...ofRandom],
  };
}

const allFlags = () =>
  Array.from({ length: 2 ** flagNames.length }, (_, bits) =>
    Object.fromEntries(flagNames.map((name, index) => [name, (bits >> index) % 2 === 1])));

async function recordFlags(name) {
  const chain = chains[name];
  const cases = [];
  for (const content of flagTokens) {
    const texts = flagStrings.map((text) => text.replaceAll('TOKEN', content));
    for (const flags of allFlags()) {
      const steps = buildSteps({
        ...chain, added_tokens: [...chain.added_tokens, { content, ...flags }],
      });
      const tokenizer = load(chain, steps);
      const encoded = await Promise.all(texts.map((text) => encode(tokenizer, text)));
      cases.push({ added_token: steps.added_tokens.at(-1), encoded });
    }
  }
  return { chain: name, cases };
}

// Lists of ids, and what is deep inside, on one line each: differences can be read.
function format(value, depth = 0) {
  const isList = Array.isArray(value);
  if (depth === 3 || value === null || typeof value !== 'object' ||
      (isList && value.every(Number.isInteger))) {
    return JSON.stringify(value);
  }
  if (isList) {
    return `[\n${value.map((element) => format(element, depth + 1)).join(',\n')}]`;
  }
  const members = Object.entries(value).map(
    ([key, member]) => `${JSON.stringify(key)}: ${format(member, depth + 1)}`);
  return `{\n${members.join(',\n')}}`;
}

async function recordAll() {
  const files = { 'strings.json': { strings, flag_strings: flagStrings } };
  for (const [name, vocabulary] of Object.entries(vocabularies)) {
    const pieces = [];
    for (const [piece, id] of Object.entries(idsOf(vocabulary))) pieces[id] = piece;
    const { merges, scores } = vocabulary;
    files[`vocabulary-${name}.json`] = merges ? { pieces, merges } : { pieces, scores: scores.map(([, score]) => score) };
  }
  for (const [name, chain] of Object.entries(chains)) {
    files[`chain-${name}.json`] = await recordChain(chain);
  }
  for (const name of flagChains) files[`flags-${name}.json`] = await recordFlags(name);
  return files;
}

async function main(folder, option) {
  if (!folder || (option && option !== '--check')) {
    console.error('usage: node record.mjs FOLDER [--check]');
    return 2;
  }
  const files = await recordAll();
  const different = [];
  for (const [name, value] of Object.entries(files)) {
    const path = join(folder, name);
    const text = format(value) + '\n';
    if (!option) writeFileSync(path, text);
    else if (readFileSync(path, 'utf8') !== text) different.push(path);
  }
  for (const path of different) console.error(`${path} differs from what the package says`);
  console.log(`${Object.keys(files).length} files, ${strings.length} strings, ` +
              `${Object.keys(chains).length} chains`);
  return different.length === 0 ? 0 : 1;
}

process.exitCode = await main(...process.argv.slice(2));
