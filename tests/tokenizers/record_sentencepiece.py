#!/usr/bin/env python3
"""Records what SentencePiece makes of the strings, for the models in FOLDER/sentencepiece.

    record_sentencepiece.py FOLDER    reads FOLDER/strings.json, writes FOLDER/sentencepiece/*.json

Needs Debian's python3-sentencepiece. The models were trained on the first 200,000 bytes of Tiny Shakespeare:

    spm_train --model_type=bpe --vocab_size=600 --byte_fallback=true --normalization_rule_name=identity \\
        --remove_extra_whitespaces=false --user_defined_symbols='<sep>'
    spm_train --model_type=unigram --vocab_size=700 --byte_fallback=true --normalization_rule_name=identity \\
        --remove_extra_whitespaces=false
    spm_train --model_type=unigram --vocab_size=400 --normalization_rule_tsv=RULES    (those of charsmap.mjs)
"""

import json
import pathlib
import sys

import sentencepiece


def is_text(string):
    """Whether no token is spelled in it that transformers looks for and SentencePiece does not."""
    return string != "" and not any(token in string for token in ("<s>", "</s>", "<unk>", "<0x"))


def main(folder):
    strings = json.loads((folder / "strings.json").read_text(encoding="utf-8"))["strings"]
    for path in sorted((folder / "sentencepiece").glob("*.model")):
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        cases = [{"text": text, "ids": processor.encode(text)} for text in filter(is_text, strings)]
        lines = ",\n".join(json.dumps(case) for case in cases)
        path.with_suffix(".json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
