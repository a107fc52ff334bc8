// Undo zlib. Browsers have DecompressionStream, but not all of them and only asynchronously; this is one path that
// works everywhere and lets the page draw at once.

function inflate(data, size) {
  const out = new Uint8Array(size);
  let at = 2, bits = 0, held = 0, written = 0, last = false; // two bytes of zlib header skipped

  const need = (count) => {
    while (held < count) { bits |= data[at++] << held; held += 8; }
  };
  const take = (count) => {
    need(count);
    const value = bits & ((1 << count) - 1);
    bits >>>= count; held -= count;
    return value;
  };
  const symbol = (table) => {
    need(table.longest);
    const entry = table.entries[bits & (table.entries.length - 1)];
    bits >>>= entry & 15; held -= entry & 15;
    return entry >>> 4;
  };

  const LENGTH = steps(29, 3, (i) => (i < 8 ? 0 : i === 28 ? 0 : (i - 4) >> 2), 28, 258);
  const DISTANCE = steps(30, 1, (i) => (i < 4 ? 0 : (i - 2) >> 1));

  const copy = (literals, distances) => {
    for (let code = symbol(literals); code !== 256; code = symbol(literals)) {
      if (code < 256) { out[written++] = code; continue; }
      const length = LENGTH.base[code - 257] + take(LENGTH.extra[code - 257]);
      const index = symbol(distances);
      const distance = DISTANCE.base[index] + take(DISTANCE.extra[index]);
      for (let i = 0; i < length; i++, written++) out[written] = out[written - distance];
    }
  };

  while (!last) {
    last = take(1) === 1;
    const kind = take(2);
    if (kind === 0) {
      at -= held >> 3; bits = held = 0; // give back whole bytes read ahead
      const length = data[at] | (data[at + 1] << 8);
      out.set(data.subarray(at + 4, at + 4 + length), written);
      at += 4 + length; written += length;
    } else if (kind === 1) {
      const fixed = Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));
      copy(huffman(fixed), huffman(new Array(30).fill(5)));
    } else {
      const literals = take(5) + 257, distances = take(5) + 1, count = take(4) + 4, order = new Array(19).fill(0);
      const places = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
      for (let i = 0; i < count; i++) order[places[i]] = take(3);
      const table = huffman(order), lengths = [];
      while (lengths.length < literals + distances) {
        const code = symbol(table);
        if (code < 16) lengths.push(code);
        else {
          const value = code === 16 ? lengths[lengths.length - 1] : 0;
          const times = code === 16 ? 3 + take(2) : code === 17 ? 3 + take(3) : 11 + take(7);
          for (let i = 0; i < times; i++) lengths.push(value);
        }
      }
      copy(huffman(lengths.slice(0, literals)), huffman(lengths.slice(literals)));
    }
  }
  if (written !== size) throw new Error(`data holds ${written} bytes, not ${size}`);
  return out;
}

// A table from the next `longest` bits to (symbol << 4 | its length), for canonical codes of the given lengths.
function huffman(lengths) {
  const longest = Math.max(1, ...lengths), entries = new Uint32Array(1 << longest);
  for (let length = 1, code = 0; length <= longest; length++, code <<= 1) {
    for (let symbol = 0; symbol < lengths.length; symbol++) {
      if (lengths[symbol] !== length) continue;
      let mirrored = 0;
      for (let bit = 0; bit < length; bit++) mirrored |= ((code >> bit) & 1) << (length - 1 - bit);
      for (let i = mirrored; i < entries.length; i += 1 << length) entries[i] = (symbol << 4) | length;
      code++;
    }
  }
  return { longest, entries };
}

// First value and number of extra bits of each length or distance code; the last length code is an exception.
function steps(count, first, extraOf, exception, value) {
  const base = [], extra = [];
  for (let i = 0, next = first; i < count; i++) {
    extra.push(extraOf(i));
    base.push(i === exception ? value : next);
    next += 1 << extra[i];
  }
  return { base, extra };
}
