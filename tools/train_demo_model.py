#!/usr/bin/env python3
"""Trains the demo model: a byte-level Llama of less than 4 MB that writes like its training text.

    train_demo_model.py TEXT --output demo.gguf --work-dir FOLDER [--steps N] [--threads N]

After every CHECKPOINT_STEPS steps it saves its state to FOLDER/checkpoint.pt and, if the held-out
loss is the lowest so far at this sequence length, the model to the output. The same command
continues from the checkpoint. Needs only PyTorch (Debian's python3-torch); trains on the CPU, with
matrix products in bf16.
"""

import argparse
import copy
import dataclasses
import json
import math
import os
import struct
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

BOS_ID = 256  # token ids below it are the bytes themselves
VOCAB_SIZE = 257
CONTEXT_LENGTH = 2048
NUM_LAYERS = 5
HIDDEN_SIZE = 192
INTERMEDIATE_SIZE = 480
NUM_HEADS = 6
NUM_KV_HEADS = 2
HEAD_DIM = HIDDEN_SIZE // NUM_HEADS
ROPE_THETA = 10000.0
NORM_EPS = 1e-5

MAX_BYTES = 4_000_000
HELD_OUT_FRACTION = 0.05  # the end of the text
TOKENS_PER_STEP = 2048
# (sequence length, share of the steps). Short sequences are cheap and teach spelling and grammar;
# the last ones teach the positions up to the end of the context.
STAGES = ((256, 0.60), (1024, 0.25), (CONTEXT_LENGTH, 0.15))
PEAK_LEARNING_RATE = 3e-3
FINAL_LEARNING_RATE = 1e-4
WARM_UP_STEPS = 100
WEIGHT_DECAY = 0.1
MAX_GRADIENT_NORM = 1.0
INIT_STDDEV = 0.03
CHECKPOINT_STEPS = 150
QUERY_CHUNK = 256  # queries that attention takes at once: it skips the keys after them


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN_SIZE))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + NORM_EPS) * self.weight


def rope_tables(length):
    """cos and sin, [length, 1, HEAD_DIM], for pairs made of a head's two halves."""
    inverse = ROPE_THETA ** -(torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    angles = torch.outer(torch.arange(length), inverse).repeat(1, 2)[:, None]
    return angles.cos(), angles.sin()


def rotate(x, rope):
    """x: [batch, length, heads, HEAD_DIM]."""
    cos, sin = rope
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def attend(q, k, v):
    """Causal attention. q and the result: [batch, length, NUM_HEADS, HEAD_DIM]; k, v: KV heads."""
    batch, length = q.shape[:2]
    group = NUM_HEADS // NUM_KV_HEADS
    q = q.view(batch, length, NUM_KV_HEADS, group, HEAD_DIM).permute(0, 2, 3, 1, 4) * HEAD_DIM**-0.5
    k, v = k.permute(0, 2, 3, 1), v.transpose(1, 2)
    outputs = []
    for begin in range(0, length, QUERY_CHUNK):
        end = min(begin + QUERY_CHUNK, length)
        rows = q[:, :, :, begin:end].flatten(2, 3)  # the heads of a group, one after the other
        scores = rows @ k[..., :end]
        mask = torch.full((end - begin, end), -math.inf, dtype=scores.dtype).triu(begin + 1)
        weights = functional.softmax(scores + mask.repeat(group, 1), dim=-1)
        out = (weights @ v[:, :, :end]).unflatten(2, (group, end - begin))
        outputs.append(out.permute(0, 3, 1, 2, 4).flatten(2, 3))
    return torch.cat(outputs, dim=1)


class Block(nn.Module):
    """Attributes have the names of GGUF's tensors, so that the state's keys are those."""

    def __init__(self):
        super().__init__()
        kv_size = NUM_KV_HEADS * HEAD_DIM
        self.attn_norm = RmsNorm()
        self.attn_q = nn.Linear(HIDDEN_SIZE, HIDDEN_SIZE, bias=False)
        self.attn_k = nn.Linear(HIDDEN_SIZE, kv_size, bias=False)
        self.attn_v = nn.Linear(HIDDEN_SIZE, kv_size, bias=False)
        self.attn_output = nn.Linear(HIDDEN_SIZE, HIDDEN_SIZE, bias=False)
        self.ffn_norm = RmsNorm()
        self.ffn_gate = nn.Linear(HIDDEN_SIZE, INTERMEDIATE_SIZE, bias=False)
        self.ffn_up = nn.Linear(HIDDEN_SIZE, INTERMEDIATE_SIZE, bias=False)
        self.ffn_down = nn.Linear(INTERMEDIATE_SIZE, HIDDEN_SIZE, bias=False)

    def forward(self, x, rope):
        h = self.attn_norm(x)
        q = rotate(self.attn_q(h).unflatten(-1, (NUM_HEADS, HEAD_DIM)), rope)
        k = rotate(self.attn_k(h).unflatten(-1, (NUM_KV_HEADS, HEAD_DIM)), rope)
        v = self.attn_v(h).unflatten(-1, (NUM_KV_HEADS, HEAD_DIM))
        x = x + self.attn_output(attend(q, k, v).flatten(-2))
        h = self.ffn_norm(x)
        return x + self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embd = nn.Embedding(VOCAB_SIZE, HIDDEN_SIZE)
        self.blk = nn.ModuleList(Block() for _ in range(NUM_LAYERS))
        self.output_norm = RmsNorm()
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                writes_residual = name.endswith(("attn_output.weight", "ffn_down.weight"))
                scale = (2 * NUM_LAYERS) ** -0.5 if writes_residual else 1.0
                nn.init.normal_(parameter, std=INIT_STDDEV * scale)

    def forward(self, tokens):
        """tokens: [batch, length]. Logits: [batch, length, VOCAB_SIZE]."""
        rope = rope_tables(tokens.shape[1])
        x = self.token_embd(tokens)
        for block in self.blk:
            x = block(x, rope)
        return functional.linear(self.output_norm(x), self.token_embd.weight)


def loss_of(model, windows):
    """Mean nats a byte. windows: [batch, length] of bytes; the model sees BOS before each."""
    bos = torch.full((len(windows), 1), BOS_ID)
    logits = model(torch.cat((bos, windows[:, :-1]), dim=1))
    return functional.cross_entropy(logits.float().flatten(0, 1), windows.flatten())


@dataclasses.dataclass
class Text:
    """The bytes of both parts, and where lines begin in the one trained on."""

    train: torch.Tensor
    held_out: torch.Tensor
    line_starts: torch.Tensor

    @classmethod
    def read(cls, path):
        data = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).long()
        num_train = int(len(data) * (1 - HELD_OUT_FRACTION))
        train = data[:num_train]
        after_newline = (train[:-1] == ord("\n")).nonzero().flatten() + 1
        return cls(train, data[num_train:], after_newline)

    def sample(self, length, generator):
        """TOKENS_PER_STEP bytes as windows of that length, each from the beginning of a line."""
        starts = self.line_starts[self.line_starts <= len(self.train) - length]
        picks = torch.randint(len(starts), (TOKENS_PER_STEP // length, 1), generator=generator)
        return self.train[starts[picks] + torch.arange(length)]


@torch.no_grad()
def evaluate(model, data, length):
    """Mean nats a byte over the data in windows of that length, without a shorter rest."""
    windows = data[: len(data) // length * length].view(-1, length)
    batches = windows.split(TOKENS_PER_STEP // length)
    return sum(loss_of(model, batch).item() * len(batch) for batch in batches) / len(windows)


def sequence_length(step, num_steps):
    end = 0.0
    for length, share in STAGES:
        end += share * num_steps
        if step < end:
            return length
    return CONTEXT_LENGTH


def learning_rate(step, num_steps):
    """Linear warm-up, then half a cosine."""
    cosine = 0.5 * (1 + math.cos(math.pi * step / num_steps))
    rate = FINAL_LEARNING_RATE + (PEAK_LEARNING_RATE - FINAL_LEARNING_RATE) * cosine
    return rate * min(1.0, (step + 1) / WARM_UP_STEPS)


def make_optimizer(model):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    norms = [p for p in model.parameters() if p.dim() == 1]
    groups = [
        {"params": matrices, "weight_decay": WEIGHT_DECAY},
        {"params": norms, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=PEAK_LEARNING_RATE, betas=(0.9, 0.99), foreach=True)


class Training:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.args = args
        self.text = Text.read(args.text)
        self.model = Llama()
        self.optimizer = make_optimizer(self.model)
        self.step = 0
        self.best_rank = (0, math.inf)
        self.checkpoint_path = args.work_dir / "checkpoint.pt"
        if self.checkpoint_path.exists():
            self.load_checkpoint()

    def load_checkpoint(self):
        state = torch.load(self.checkpoint_path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        self.best_rank = state["best_rank"]

    def save_checkpoint(self):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "best_rank": self.best_rank,
        }
        unfinished = self.checkpoint_path.with_suffix(".new")
        torch.save(state, unfinished)
        os.replace(unfinished, self.checkpoint_path)

    def run_step(self):
        """One update; returns its loss. The windows depend on the seed and the step alone."""
        generator = torch.Generator().manual_seed(self.args.seed << 32 | self.step)
        windows = self.text.sample(sequence_length(self.step, self.args.steps), generator)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.args.steps)
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(self.model, windows)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), MAX_GRADIENT_NORM)
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def run(self):
        while self.step < self.args.steps:
            num_steps = min(CHECKPOINT_STEPS, self.args.steps - self.step)
            begin = time.monotonic()
            training_loss = sum(self.run_step() for _ in range(num_steps)) / num_steps
            seconds = time.monotonic() - begin
            length = sequence_length(self.step - 1, self.args.steps)
            held_out_loss = self.keep_if_best(length)
            self.save_checkpoint()
            print(
                f"step {self.step}/{self.args.steps}  length {length}"
                f"  training {training_loss:.4f}  held out {held_out_loss:.4f}"
                f"  {num_steps * TOKENS_PER_STEP / seconds:.0f} tokens/s",
                flush=True,
            )

    def keep_if_best(self, length):
        """Evaluates at the length just trained at, as the model knows no positions after it."""
        with torch.autocast("cpu", torch.bfloat16):
            loss = evaluate(self.model, self.text.held_out, length)
        rank = (-length, loss)
        if rank < self.best_rank:
            self.best_rank = rank
            write_gguf(self.model, self.args.output)
        return loss

    def report(self):
        """Prints the figures of the finished model; the training loss is of the first 5 %."""
        rounded = copy.deepcopy(self.model)
        round_matrices(rounded)
        held_out, seen = self.text.held_out, self.text.train[: len(self.text.held_out)]
        figures = {
            "tokens_seen": self.step * TOKENS_PER_STEP,
            "training_loss": evaluate(self.model, seen, CONTEXT_LENGTH),
            "held_out_loss": evaluate(self.model, held_out, CONTEXT_LENGTH),
            "training_loss_bf16": evaluate(rounded, seen, CONTEXT_LENGTH),
            "held_out_loss_bf16": evaluate(rounded, held_out, CONTEXT_LENGTH),
        }
        print(json.dumps(figures, indent=2))


def round_matrices(model):
    """Makes the matrices what the file holds."""
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.data = parameter.data.bfloat16().float()


# GGUF: numbers of its value types and tensor types, and the file's default alignment.
GGUF_UINT32, GGUF_INT32, GGUF_FLOAT32, GGUF_BOOL, GGUF_STRING, GGUF_ARRAY = 4, 5, 6, 7, 8, 9
GGML_F32, GGML_BF16 = 0, 30
GGUF_ALIGNMENT = 32
GGUF_FILE_TYPE_BF16 = 32
TOKEN_NORMAL, TOKEN_CONTROL = 1, 3


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


GGUF_ENCODERS = {
    GGUF_UINT32: lambda value: struct.pack("<I", value),
    GGUF_INT32: lambda value: struct.pack("<i", value),
    GGUF_FLOAT32: lambda value: struct.pack("<f", value),
    GGUF_BOOL: lambda value: struct.pack("<?", value),
    GGUF_STRING: gguf_string,
}


def gguf_value(kind, value):
    """The type and the value; a list is an array of that type."""
    encode = GGUF_ENCODERS[kind]
    if isinstance(value, list):
        head = struct.pack("<IIQ", GGUF_ARRAY, kind, len(value))
        return head + b"".join(encode(element) for element in value)
    return struct.pack("<I", kind) + encode(value)


def byte_spellings():
    """GPT-2's printable character for each byte: itself, or the next one from U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    shifted = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(shifted)) for byte in range(256)]


def gguf_metadata():
    return {
        "general.architecture": (GGUF_STRING, "llama"),
        "general.name": (GGUF_STRING, "kvick demo"),
        "general.license": (GGUF_STRING, "apache-2.0"),
        "general.file_type": (GGUF_UINT32, GGUF_FILE_TYPE_BF16),
        "llama.block_count": (GGUF_UINT32, NUM_LAYERS),
        "llama.context_length": (GGUF_UINT32, CONTEXT_LENGTH),
        "llama.embedding_length": (GGUF_UINT32, HIDDEN_SIZE),
        "llama.feed_forward_length": (GGUF_UINT32, INTERMEDIATE_SIZE),
        "llama.attention.head_count": (GGUF_UINT32, NUM_HEADS),
        "llama.attention.head_count_kv": (GGUF_UINT32, NUM_KV_HEADS),
        "llama.attention.layer_norm_rms_epsilon": (GGUF_FLOAT32, NORM_EPS),
        "llama.rope.dimension_count": (GGUF_UINT32, HEAD_DIM),
        "llama.rope.freq_base": (GGUF_FLOAT32, ROPE_THETA),
        "llama.vocab_size": (GGUF_UINT32, VOCAB_SIZE),
        "tokenizer.ggml.model": (GGUF_STRING, "gpt2"),
        "tokenizer.ggml.pre": (GGUF_STRING, "default"),
        "tokenizer.ggml.tokens": (GGUF_STRING, byte_spellings() + ["<|endoftext|>"]),
        "tokenizer.ggml.token_type": (GGUF_INT32, [TOKEN_NORMAL] * 256 + [TOKEN_CONTROL]),
        "tokenizer.ggml.merges": (GGUF_STRING, []),
        "tokenizer.ggml.bos_token_id": (GGUF_UINT32, BOS_ID),
        "tokenizer.ggml.eos_token_id": (GGUF_UINT32, BOS_ID),
        "tokenizer.ggml.add_bos_token": (GGUF_BOOL, True),
    }


def interleave_halves(rows):
    """Rows of q or k in GGUF's order: the two of a RoPE pair side by side."""
    return rows.unflatten(0, (-1, 2, HEAD_DIM // 2)).transpose(1, 2).flatten(0, 2)


def gguf_tensor(name, values):
    """The tensor's type number and bytes."""
    if values.dim() == 1:
        return GGML_F32, values.contiguous().numpy().tobytes()
    if name.endswith(("attn_q.weight", "attn_k.weight")):
        values = interleave_halves(values)
    return GGML_BF16, values.bfloat16().contiguous().view(torch.int16).numpy().tobytes()


def padded(data):
    return data + bytes(-len(data) % GGUF_ALIGNMENT)


def write_gguf(model, path):
    """Replaces the file at once, so that a stop leaves the old one or the new."""
    metadata = gguf_metadata()
    tensors = model.state_dict()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, (kind, value) in metadata.items():
        head += gguf_string(key) + gguf_value(kind, value)
    body = b""
    for name, values in tensors.items():
        kind, data = gguf_tensor(name, values)
        sizes = values.shape[::-1]  # GGUF names the innermost first
        head += gguf_string(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        head += struct.pack("<IQ", kind, len(body))
        body += padded(data)
    data = padded(head) + body
    if len(data) > MAX_BYTES:
        raise ValueError(f"model file: expected at most {MAX_BYTES} bytes, got {len(data)}")
    unfinished = path.with_suffix(".new")
    unfinished.write_bytes(data)
    os.replace(unfinished, path)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path, help="the text to learn")
    parser.add_argument("--output", type=Path, required=True, help="the GGUF file to write")
    parser.add_argument("--work-dir", type=Path, required=True, help="where the checkpoint goes")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args()


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    args.work_dir.mkdir(parents=True, exist_ok=True)
    training = Training(args)
    training.run()
    training.report()


if __name__ == "__main__":
    main()
