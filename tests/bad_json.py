"""JSON that Python's own reader takes, takes for something else, or falls over; and what gatepost says of each."""

DEEP = 100_000
LONG = 10_000_000

BAD: dict[str, tuple[bytes, str]] = {
    "NaN": (b'{"rate":NaN}', "NaN is not a JSON number"),
    "infinity": (b'{"rate":Infinity}', "Infinity is not a JSON number"),
    "minus infinity": (b'{"rate":-Infinity}', "-Infinity is not a JSON number"),
    "past the largest double": (b'{"rate":1e400}', "number 1e400 overflows a double"),
    "a key twice": (b'{"timeout":1,"timeout":120}', "key 'timeout' appears twice"),
    "a key twice, further in": (b'{"a":{"k":1,"k":2}}', "key 'k' appears twice"),
    "a key twice, spelt otherwise": (b'{"a":1,"\\u0061":2}', "key 'a' appears twice"),
    "an integer past 2^53": (b'{"seed":9007199254740993}', "integer 9007199254740993 is beyond 2^53"),
    "an integer past -2^53": (b'{"seed":-9007199254740993}', "integer -9007199254740993 is beyond 2^53"),
    "an integer of 17 digits": (b'{"seed":10000000000000000}', "is beyond 2^53"),
    "an integer of 5 000 digits": (b'{"seed":%s}' % (b"9" * 5000), "is beyond 2^53"),
    "an integer of 10 MB": (b'{"seed":%s}' % (b"9" * LONG), "is beyond 2^53"),
    "an exponent of 10 MB": (b'{"rate":1e%s}' % (b"9" * LONG), "overflows a double"),
    "half a surrogate pair": (b'{"t":"\\ud800"}', "lone surrogate"),
    "half a pair in a key": (b'{"\\udfff":1}', "lone surrogate"),
    "a pair the wrong way round": (b'{"t":"\\ude00\\ud83d"}', "lone surrogate"),
    "half a pair in 10 MB": (b'{"t":"%s\\ud800"}' % (b"x" * LONG), "lone surrogate"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "starts with a byte order mark"),
    "not UTF-8": (b'{"t":"\xff"}', "byte 6 is not UTF-8"),
    "half a surrogate pair in UTF-8": (b'{"t":"\xed\xa0\x80"}', "byte 6 is not UTF-8"),
    "UTF-16": ('{"a":1}'.encode("utf-16"), "byte 0 is not UTF-8"),
    "a second document": (b"{} {}", "Extra data"),
    "a word after the end": (b"{}x", "Extra data"),
    "a comment": (b"{} // no", "Extra data"),
    "a comma too many": (b'{"a":[1,]}', "not JSON at line 1"),
    "a string that does not end": (b'{"a":"', "not JSON at line 1"),
    "a control character": (b'{"a":"\t"}', "Invalid control character"),
    "single quotes": (b"{'a':1}", "not JSON at line 1"),
    "an integer with a leading zero": (b'{"a":01}', "not JSON at line 1"),
    "lists 100 000 deep": (b"[" * DEEP + b"]" * DEEP, "nested deeper than 200 levels"),
    "lists 100 000 deep that do not end": (b"[" * DEEP, "nested deeper than 200 levels"),
    "objects 100 000 deep": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "nested deeper than 200 levels"),
    "lists 201 deep": (b"[" * 201 + b"]" * 201, "nested deeper than 200 levels"),
    "5 MB in a key twice": (
        b'{"%s":1,"%s":2}' % (b"k" * (LONG // 2), b"k" * (LONG // 2)),
        "appears twice in one object",
    ),
}
"""What is wrong -> (the bytes, a part of the sentence that refuses them)."""

SHORT = {name: (data, said) for name, (data, said) in BAD.items() if len(data) < 1_000_000}

NO_OBJECT: dict[str, bytes] = {
    "a string of 10 MB": b'"%s"' % (b"x" * LONG),
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "an object with a key of 10 MB": b'{"%s":1}' % (b"k" * LONG),
    "an object with a string of 10 MB": b'{"schema":"%s"}' % (b"x" * LONG),
}
"""Sound JSON that is no record."""
