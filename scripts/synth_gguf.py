#!/usr/bin/env python3
"""Writes a GGUF file of a real model's shape with random weights, in the mix of types that q4_k_m files have.

  scripts/synth_gguf.py OUT [--preset qwen2.5-7b] [--vocab VOCAB.gguf] [--layers N] [--seed S]

Speed depends on shapes and types, not on what the weights say, so such a file measures like the real one. Blocks are
random bytes with scales put in that keep the weights near N(0, sigma^2), sigma 1 / sqrt(columns): activations stay in
range however deep the model. --vocab takes the tokenizer of another GGUF file (padded or cut to the preset's size);
without it, a byte-level one is made up.
"""
import argparse
import dataclasses
import math
import random
import struct
import sys
from typing import BinaryIO, Iterator


@dataclasses.dataclass(frozen=True)
class Shape:
    arch: str
    n_embd: int
    n_ff: int
    n_layer: int
    n_head: int
    n_head_kv: int
    head_dim: int
    n_vocab: int
    tied: bool
    rope_base: float
    n_ctx: int
    rms_eps: float


PRESETS = {
    "qwen2.5-0.5b": Shape("qwen2", 896, 4864, 24, 14, 2, 64, 151936, True, 1e6, 32768, 1e-6),
    "qwen2.5-1.5b": Shape("qwen2", 1536, 8960, 28, 12, 2, 128, 151936, True, 1e6, 32768, 1e-6),
    "qwen2.5-7b": Shape("qwen2", 3584, 18944, 28, 28, 4, 128, 152064, False, 1e6, 32768, 1e-6),
    "llama3.1-8b": Shape("llama", 4096, 14336, 32, 32, 8, 128, 128256, False, 5e5, 131072, 1e-5),
    "tiny": Shape("qwen2", 256, 768, 3, 4, 2, 64, 1024, False, 1e6, 4096, 1e-6),
}

# Tensor types: number in the file, values and bytes a block.
F32, Q5_0, Q8_0, Q4_K, Q6_K = (0, 1, 4), (6, 32, 22), (8, 32, 34), (12, 256, 144), (14, 256, 210)
ALIGNMENT = 32
U32, I32, FLOAT, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, U32: 4, I32: 4, FLOAT: 4, BOOL: 1, U64: 8, 11: 8, 12: 8}


class Blocks:
    """Random blocks of one type; byte i of every block can be set at once."""

    def __init__(self, random: random.Random, n_blocks: int, block_bytes: int):
        self.n, self.stride = n_blocks, block_bytes
        self.bytes = bytearray(random.randbytes(n_blocks * block_bytes))

    def set_byte(self, at: int, value: int) -> None:
        self.bytes[at :: self.stride] = bytes((value,)) * self.n

    def set_half(self, at: int, value: float) -> None:
        low, high = struct.pack("<e", value)
        self.set_byte(at, low)
        self.set_byte(at + 1, high)


def uniform_deviation(n_values: int) -> float:
    """Standard deviation of n whole numbers in a row, all equally likely."""
    return math.sqrt((n_values**2 - 1) / 12)


# Each of these puts scales into blocks so that the values have mean (about) 0 and deviation sigma.
def scale_q8_0(blocks: Blocks, sigma: float) -> None:
    blocks.set_half(0, sigma / uniform_deviation(256))  # d; then 32 signed bytes


def scale_q5_0(blocks: Blocks, sigma: float) -> None:
    blocks.set_half(0, sigma / uniform_deviation(32))  # d; then 32 five-bit values less 16


def scale_q4_k(blocks: Blocks, sigma: float) -> None:
    # value = d * scale * q - dmin * min, q uniform in 0..15, so 7.5 on average. With every 6-bit scale and min the same
    # number and dmin = 7.5 d, the mean is 0 whatever the number is.
    number = 33
    d = sigma / (number * uniform_deviation(16))
    blocks.set_half(0, d)
    blocks.set_half(2, 7.5 * d)
    # Twelve bytes hold 8 scales and 8 mins: six bits of the first four of each, and above them the two top bits of the
    # other four, whose low nibbles fill the last four bytes.
    top, low = number >> 4, number & 15
    for at in range(4, 12):
        blocks.set_byte(at, top << 6 | number)
    for at in range(12, 16):
        blocks.set_byte(at, low | low << 4)


def scale_q6_k(blocks: Blocks, sigma: float) -> None:
    number = 32  # the scale of every sub-block
    for at in range(192, 208):
        blocks.set_byte(at, number)
    blocks.set_half(208, sigma / (number * uniform_deviation(64)))  # d; q is uniform in -32..31


SCALES = {Q8_0: scale_q8_0, Q5_0: scale_q5_0, Q4_K: scale_q4_k, Q6_K: scale_q6_k}


def write_matrix(out: BinaryIO, rng: random.Random, kind: tuple, n_rows: int, n_cols: int) -> None:
    n_blocks, at_a_time = n_rows * n_cols // kind[1], 1 << 16
    for first in range(0, n_blocks, at_a_time):
        blocks = Blocks(rng, min(at_a_time, n_blocks - first), kind[2])
        SCALES[kind](blocks, n_cols**-0.5)
        out.write(blocks.bytes)


# ---- the tensors of a model --------------------------------------------------------------------------------------


def takes_more_bits(layer: int, n_layer: int) -> bool:
    """The layers whose v and down q4_k_m keeps in a larger type: the first and last eighth, every third between."""
    return layer < n_layer // 8 or layer >= 7 * n_layer // 8 or (layer - n_layer // 8) % 3 == 2


def matrix_type(n_cols: int, large: bool) -> tuple:
    if n_cols % 256 == 0:
        return Q6_K if large else Q4_K
    return Q8_0 if large else Q5_0  # what K-quants fall back to where a row is not whole blocks


def tensors(shape: Shape) -> Iterator[tuple]:
    """(name, type, rows, columns); vectors have no rows."""
    d, q, kv = shape.n_embd, shape.n_head * shape.head_dim, shape.n_head_kv * shape.head_dim
    yield "token_embd.weight", matrix_type(d, shape.tied), shape.n_vocab, d
    yield "output_norm.weight", F32, 0, d
    if not shape.tied:
        yield "output.weight", matrix_type(d, True), shape.n_vocab, d
    for layer in range(shape.n_layer):
        more = takes_more_bits(layer, shape.n_layer)
        for name, kind, rows, columns in (
            ("attn_norm", F32, 0, d),
            ("attn_q", matrix_type(d, False), q, d),
            ("attn_k", matrix_type(d, False), kv, d),
            ("attn_v", matrix_type(d, more), kv, d),
            ("attn_output", matrix_type(q, False), d, q),
            ("ffn_norm", F32, 0, d),
            ("ffn_gate", matrix_type(d, False), shape.n_ff, d),
            ("ffn_up", matrix_type(d, False), shape.n_ff, d),
            ("ffn_down", matrix_type(shape.n_ff, more), d, shape.n_ff),
        ):
            yield f"blk.{layer}.{name}.weight", kind, rows, columns
        if shape.arch == "qwen2":
            for name, n in (("attn_q", q), ("attn_k", kv), ("attn_v", kv)):
                yield f"blk.{layer}.{name}.bias", F32, 0, n


# ---- keys --------------------------------------------------------------------------------------------------------


def string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def key(name: str, kind: int, value) -> bytes:
    packed = {U32: lambda: struct.pack("<I", value), FLOAT: lambda: struct.pack("<f", value),
              BOOL: lambda: struct.pack("<B", value), STRING: lambda: string(value)}[kind]()
    return string(name) + struct.pack("<I", kind) + packed


def array_key(name: str, kind: int, count: int, packed: bytes) -> bytes:
    return string(name) + struct.pack("<IIQ", ARRAY, kind, count) + packed


def model_keys(shape: Shape, preset: str) -> list[bytes]:
    arch = shape.arch
    return [
        key("general.architecture", STRING, arch),
        key("general.name", STRING, f"synthetic {preset}"),
        key("general.file_type", U32, 15),
        key(f"{arch}.context_length", U32, shape.n_ctx),
        key(f"{arch}.embedding_length", U32, shape.n_embd),
        key(f"{arch}.block_count", U32, shape.n_layer),
        key(f"{arch}.feed_forward_length", U32, shape.n_ff),
        key(f"{arch}.attention.head_count", U32, shape.n_head),
        key(f"{arch}.attention.head_count_kv", U32, shape.n_head_kv),
        key(f"{arch}.rope.dimension_count", U32, shape.head_dim),
        key(f"{arch}.rope.freq_base", FLOAT, shape.rope_base),
        key(f"{arch}.attention.layer_norm_rms_epsilon", FLOAT, shape.rms_eps),
        key(f"{arch}.vocab_size", U32, shape.n_vocab),
    ]


def byte_alphabet() -> list[str]:
    """The printable stand-ins of byte-level BPE: visible Latin-1 stands for itself, the rest from U+0100 on."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in visible else chr(next(others)) for byte in range(256)]


def made_up_tokenizer(n_vocab: int) -> list[bytes]:
    pieces = [*byte_alphabet(), *(f"[{i}]" for i in range(256, n_vocab - 1)), "<|endoftext|>"]
    types = [1] * (n_vocab - 1) + [3]  # the last one is a control token
    merge = byte_alphabet()[ord(" ")] + " t"  # there has to be one; its result is no token, so it never applies
    return [
        key("tokenizer.ggml.model", STRING, "gpt2"),
        key("tokenizer.ggml.pre", STRING, "qwen2"),
        array_key("tokenizer.ggml.tokens", STRING, n_vocab, b"".join(map(string, pieces))),
        array_key("tokenizer.ggml.token_type", I32, n_vocab, struct.pack(f"<{n_vocab}i", *types)),
        array_key("tokenizer.ggml.merges", STRING, 1, string(merge)),
        key("tokenizer.ggml.eos_token_id", U32, n_vocab - 1),
        key("tokenizer.ggml.bos_token_id", U32, n_vocab - 1),
        key("tokenizer.ggml.add_bos_token", BOOL, False),
    ]


class Cursor:
    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, form: str) -> tuple:
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def take_bytes(self, n: int) -> bytes:
        self.at += n
        return self.data[self.at - n : self.at]

    def take_value(self, kind: int) -> bytes:
        start = self.at
        if kind == STRING:
            self.at += 8 + struct.unpack_from("<Q", self.data, self.at)[0]
        elif kind == ARRAY:
            inner, count = self.take("IQ")
            if inner in SCALAR_BYTES:
                self.at += count * SCALAR_BYTES[inner]
            else:
                for _ in range(count):
                    self.take_value(inner)
        else:
            self.at += SCALAR_BYTES[kind]
        return self.data[start : self.at]


def resized(name: str, value: bytes, n_vocab: int) -> bytes:
    """An array of the vocabulary, cut or padded to n_vocab entries."""
    cursor = Cursor(value)
    kind, count = cursor.take("IQ")
    kept = b"".join(cursor.take_value(kind) for _ in range(min(count, n_vocab)))
    for i in range(count, n_vocab):
        kept += string(f"[unused{i}]") if kind == STRING else struct.pack("<i", 5) if kind == I32 else struct.pack("<f", -1e4)
    return struct.pack("<IQ", kind, n_vocab) + kept


def borrowed_tokenizer(path: str, n_vocab: int) -> list[bytes]:
    with open(path, "rb") as file:
        cursor = Cursor(file.read())
    magic, _, _, n_keys = cursor.take("4sIQQ")
    if magic != b"GGUF":
        sys.exit(f"{path}: not a GGUF file")
    keys = []
    for _ in range(n_keys):
        name = cursor.take_bytes(cursor.take("Q")[0]).decode()
        (kind,) = cursor.take("I")
        value = cursor.take_value(kind)
        if not name.startswith("tokenizer."):
            continue
        if name in ("tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.scores"):
            value = resized(name, value, n_vocab)
        keys.append(string(name) + struct.pack("<I", kind) + value)
    return keys


# ---- the file ----------------------------------------------------------------------------------------------------


def pad(n: int) -> int:
    return -n % ALIGNMENT


def write(path: str, shape: Shape, keys: list[bytes], seed: int) -> int:
    rng = random.Random(seed)
    directory, offset, all_tensors = [], 0, list(tensors(shape))
    for name, kind, rows, columns in all_tensors:
        dims = struct.pack("<IQQ", 2, columns, rows) if rows else struct.pack("<IQ", 1, columns)
        directory.append(string(name) + dims + struct.pack("<IQ", kind[0], offset))
        n_bytes = max(rows, 1) * columns // kind[1] * kind[2]
        offset += n_bytes + pad(n_bytes)
    with open(path, "wb") as out:
        out.write(struct.pack("<4sIQQ", b"GGUF", 3, len(all_tensors), len(keys)) + b"".join(keys) + b"".join(directory))
        out.write(bytes(pad(out.tell())))
        for name, kind, rows, columns in all_tensors:
            if rows:
                write_matrix(out, rng, kind, rows, columns)
            elif name.endswith(".bias"):
                out.write(struct.pack(f"<{columns}f", *(rng.gauss(0, 0.1) for _ in range(columns))))
            else:
                out.write(struct.pack(f"<{columns}f", *[1.0] * columns))  # norms
            out.write(bytes(pad(out.tell())))
        return out.tell()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--preset", default="qwen2.5-7b", choices=PRESETS)
    parser.add_argument("--vocab", help="a GGUF file whose tokenizer is taken")
    parser.add_argument("--layers", type=int, help="another number of layers")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    shape = PRESETS[options.preset]
    if options.layers:
        shape = dataclasses.replace(shape, n_layer=options.layers)
    tokenizer = borrowed_tokenizer(options.vocab, shape.n_vocab) if options.vocab else made_up_tokenizer(shape.n_vocab)
    n_bytes = write(options.out, shape, model_keys(shape, options.preset) + tokenizer, options.seed)
    print(f"{options.out}: {n_bytes / 1e9:.3f} GB")


if __name__ == "__main__":
    main()
