"""Random damage to files: what a bad disk, a cut download or an attacker makes of them.

Every function takes the random generator and the bytes, and returns what was done, in words, and
the damaged bytes.
"""

import re
import struct

_EXTREME_INTEGERS = [0, 1, 2, 3, 0x7F, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1,
                     2**63, 2**64 - 2, 2**64 - 1]
_EXTREME_JSON = ["0", "-1", "1", "7", "2147483648", "4294967296", "9223372036854775807",
                 "18446744073709551615", "18446744073709551616", "1e308", "-1e999", "0.5", "1e-320",
                 "null", "true", "[]", "{}", '""', '"x"', '"\\u0000"', '"\\ud800"', "[" * 5000,
                 "[0,0]", "[-1,4]", "[18446744073709551615,18446744073709551615]",
                 '{"a":' * 5000, "", ",", '"']
_JSON_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[\[\]{}:,]')


def _flip_bits(rng, data):
    damaged = bytearray(data)
    places = [rng.randrange(len(data)) for _ in range(rng.choice([1, 1, 2, 8, 64]))]
    for place in places:
        damaged[place] ^= 1 << rng.randrange(8)
    return f"bits flipped at {places}", bytes(damaged)


def _cut(rng, data):
    length = rng.randrange(len(data))
    return f"cut to {length} bytes", data[:length]


def _overwrite(rng, data):
    size = rng.choice([1, 2, 4, 8])
    value = rng.choice(_EXTREME_INTEGERS) & ((1 << 8 * size) - 1)
    place = rng.randrange(max(1, len(data) - size))
    damaged = data[:place] + value.to_bytes(size, "little") + data[place + size:]
    return f"{size} bytes at {place} set to {value:#x}", damaged


def _insert(rng, data):
    place, size = rng.randrange(len(data)), rng.choice([1, 3, 8, 32, 4096])
    return f"{size} bytes put in at {place}", data[:place] + rng.randbytes(size) + data[place:]


def _remove(rng, data):
    place, size = rng.randrange(len(data)), rng.choice([1, 3, 8, 32, 4096])
    return f"{size} bytes taken out at {place}", data[:place] + data[place + size:]


def any_bytes(rng, data):
    """A file of which nothing is known."""
    return rng.choice([_flip_bits, _cut, _overwrite, _insert, _remove])(rng, data)


def _within(rng, data, begin, end):
    """Damage to [begin, end); nothing else moves, unless the size of that part changes."""
    what, part = any_bytes(rng, data[begin:end])
    return f"{what}, counted from {begin}", data[:begin] + part + data[end:]


def _gguf_field(rng, data):
    """The length of a name, or what follows it: a type, a value, a number of dimensions, a size."""
    names = list(re.finditer(rb"(general|llama|tokenizer)\.[a-z_.]+|[a-z0-9_.]+\.weight", data))
    name = rng.choice(names)
    place, size = rng.choice([(name.start() - 8, 8), (name.end(), 4), (name.end() + 4, 4),
                              (name.end() + 4, 8), (name.end() + 8, 8), (name.end() + 12, 8),
                              (name.end() + 20, 4), (name.end() + 24, 8)])
    value = rng.choice(_EXTREME_INTEGERS) & ((1 << 8 * size) - 1)
    damaged = data[:place] + value.to_bytes(size, "little") + data[place + size:]
    return f"{size} bytes at {place}, by {name.group().decode()}, set to {value:#x}", damaged


def gguf(rng, data, header_bytes):
    """Most often in the header: there a fault can lead astray."""
    kind = rng.randrange(8)
    if kind < 4:
        return _gguf_field(rng, data)
    if kind == 4:
        place = rng.choice([4, 8, 16])
        what, counts = _overwrite(rng, data[place:place + 8])
        return f"{what}, counted from {place}", data[:place] + counts + data[place + 8:]
    return _within(rng, data, 0, header_bytes) if kind < 7 else any_bytes(rng, data)


def json_text(rng, data):
    """A value, a name or a bracket becomes something else; or any bytes do."""
    if rng.randrange(4) == 0:
        return any_bytes(rng, data)
    token = rng.choice(list(_JSON_TOKEN.finditer(data)))
    new = rng.choice(_EXTREME_JSON).encode()
    return (f"{token.group()[:40]!r} at {token.start()} became {new[:40]!r}",
            data[:token.start()] + new + data[token.end():])


def safetensors(rng, data):
    """Most often in the JSON header, whose length is then corrected."""
    (header_bytes,) = struct.unpack_from("<Q", data)
    if rng.randrange(4) == 0:
        return _within(rng, data, 0, 8 + header_bytes)
    what, header = json_text(rng, data[8:8 + header_bytes])
    return what, struct.pack("<Q", len(header)) + header + data[8 + header_bytes:]
