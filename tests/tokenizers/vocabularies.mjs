// Small vocabularies with merges or scores, trained on the strings of the test. Nothing is split before
// training, so merges cross the borders of words: a word border in the wrong place changes ids.

function byteSpellings() {
  const printable = (byte) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  const spellings = [];
  let numOthers = 0;
  for (let byte = 0; byte < 256; ++byte) {
    spellings.push(String.fromCodePoint(printable(byte) ? byte : 256 + numOthers++));
  }
  return spellings;
}

function mostFrequentPair(words) {
  const counts = new Map();
  for (const word of words) {
    for (let i = 0; i + 1 < word.length; ++i) {
      const pair = JSON.stringify([word[i], word[i + 1]]);
      counts.set(pair, (counts.get(pair) ?? 0) + 1);
    }
  }
  let best = null;
  for (const [pair, count] of counts) {
    if (count < 2) continue;
    if (!best || count > best.count || (count === best.count && pair < best.pair)) {
      best = { pair, count };
    }
  }
  return best && JSON.parse(best.pair);
}

function join(word, left, right) {
  const joined = [];
  for (let i = 0; i < word.length; ++i) {
    if (word[i] === left && word[i + 1] === right) {
      joined.push(left + right);
      ++i;
    } else {
      joined.push(word[i]);
    }
  }
  return joined;
}

function train(vocab, symbolsOfTexts, numMerges) {
  let words = symbolsOfTexts;
  const merges = [];
  while (merges.length < numMerges) {
    const pair = mostFrequentPair(words);
    if (!pair) break;
    merges.push(pair);
    vocab[pair.join('')] ??= Object.keys(vocab).length;
    words = words.map((word) => join(word, ...pair));
  }
  return { vocab, merges };
}

// As GPT-2: a token for each byte, none for control tokens.
export function byteLevelVocabulary(texts, numMerges) {
  const spellings = byteSpellings();
  const vocab = Object.fromEntries(spellings.map((spelling, byte) => [spelling, byte]));
  const words = texts.map((text) => [...Buffer.from(text)].map((byte) => spellings[byte]));
  return train(vocab, words, numMerges);
}

// As Llama 2: <unk>, <s>, </s>, a token for each byte, then the characters that come more than once.
export function spaceMarkerVocabulary(texts, numMerges) {
  const vocab = { '<unk>': 0, '<s>': 1, '</s>': 2 };
  for (let byte = 0; byte < 256; ++byte) {
    const digits = byte.toString(16).toUpperCase().padStart(2, '0');
    vocab[`<0x${digits}>`] = byte + 3;
  }
  const marked = texts.map((text) => [...('\u2581' + text.replaceAll(' ', '\u2581'))]);
  const counts = new Map();
  for (const character of marked.flat()) counts.set(character, (counts.get(character) ?? 0) + 1);
  for (const [character, count] of counts) {
    if (count > 1) vocab[character] = Object.keys(vocab).length;
  }
  const known = marked.map((text) => text.filter((character) => character in vocab));
  return train(vocab, known, numMerges);
}

// Pieces of the other vocabulary with scores, for Unigram. Many are equal, and sums of some are
// equal to the score of another: ties decide. Byte pieces count as pieces like others.
export function unigramVocabulary(texts, numMerges) {
  const { vocab } = spaceMarkerVocabulary(texts, numMerges);
  const isByte = (piece) => /^<0x..>$/.test(piece);
  return {
    scores: Object.entries(vocab).map(([piece, id]) => {
      if (id < 3) return [piece, 0];
      if (isByte(piece)) return [piece, -15.25];
      return [piece, -2 * [...piece].length - (id * 7919 % 5) / 4 - (id % 7 === 0 ? 0.1 : 0)];
    }),
  };
}
