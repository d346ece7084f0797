// Few servers compress what is not text: of the largest files, a compressed copy lies beside them.

const PACKED = /\/(pyodide\.asm\.wasm|python_kernel\.zip)$/;
const fetchAsItIs = self.fetch.bind(self);

async function fetchUnpacked(request, options) {
  const address = String(request.url ?? request);
  if (!PACKED.test(address)) return fetchAsItIs(request, options);
  const answer = await fetchAsItIs(`${address}.gz`);
  if (!answer.ok) return fetchAsItIs(request, options);
  const sent = answer.headers.has("Content-Encoding"); // then the browser has unpacked it
  const body = sent ? answer.body : answer.body.pipeThrough(new DecompressionStream("gzip"));
  const type = address.endsWith(".wasm") ? "application/wasm" : "application/zip";
  return new Response(body, { headers: { "Content-Type": type } });
}
