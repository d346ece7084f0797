// What comes from who trains: bytes that become an object.

const decoder = new TextDecoder();
const HALVES = new Float32Array(65536).map((_, bits) => halfOf(bits)); // all numbers of 16 bits

// A message is a length, a header of that length, and arrays one after the other. The arrays are views of the
// message: only numbers of 16 bits are copied, since not all browsers know them.
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const message = JSON.parse(decoder.decode(new Uint8Array(buffer, 4, length)));
  const layouts = message.arrays;
  message.arrays = {};
  message.shapes = {};
  let at = 4 + length;
  for (const [name, type, shape] of layouts) {
    const Kind = { f2: Uint16Array, f4: Float32Array, i1: Int8Array, u1: Uint8Array }[type];
    const array = new Kind(buffer, at, shape.reduce((product, size) => product * size, 1));
    message.arrays[name] = type === "f2" ? widened(array) : array;
    message.shapes[name] = shape;
    at += array.byteLength + 3 & ~3;
  }
  return message;
}

function widened(halves) {
  const array = new Float32Array(halves.length);
  for (let i = 0; i < array.length; i++) array[i] = HALVES[halves[i]];
  return array;
}

// A float16 from its bits: a sign, five of the exponent, ten of the fraction.
function halfOf(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, bits >> 10 & 31, (bits & 1023) / 1024];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14);
}
