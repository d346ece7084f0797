// Keeps what pages load, so that a second visit works without a network.
//
// `make site` puts the same file beside the front page and beside JupyterLite, which registers its own, and writes
// the build's name into it: a new build begins with an empty cache. Pages are asked for first, and come from the cache
// where there is no network; all else stays what it is, and comes from the cache first.

const BUILD = "BUILD";
const FIRST_ASKED = /(\/|\.html|\.json|service-worker\.js)$/;
importScripts("packed.js");
const channel = new BroadcastChannel("/sw-api.v1"); // of JupyterLite, for the files that a kernel reads

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(begin()));
addEventListener("message", ({ data }) => Array.isArray(data) && data.forEach((address) => keepLoaded(address)));
addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (origin === location.origin) {
    if (pathname.endsWith("/api/service-worker-heartbeat")) return event.respondWith(new Response("ok"));
    if (pathname.includes("/api/drive") || pathname.includes("/api/stdin/")) return event.respondWith(asked(request, pathname));
  }
  if (request.method === "GET" && origin.startsWith("http") && !request.headers.has("range")) event.respondWith(got(request));
});

async function begin() {
  for (const name of await caches.keys()) if (name.startsWith("needle-") && name !== `needle-${BUILD}`) await caches.delete(name);
  await clients.claim();
}

async function got(request) {
  const cache = await caches.open(`needle-${BUILD}`);
  const isPage = request.mode === "navigate" || FIRST_ASKED.test(new URL(request.url).pathname);
  const found = isPage ? null : await cache.match(request);
  if (found) return found;
  try {
    const answer = await fetchUnpacked(request);
    if (answer.ok && answer.type !== "opaque") keep(cache, request, answer.clone());
    return answer;
  } catch (error) {
    const old = await cache.match(request, { ignoreSearch: isPage });
    if (old) return old;
    throw error;
  }
}

// Where there is no room, a page works all the same.
function keep(cache, request, answer) {
  return cache.put(request, answer).catch(() => {});
}

async function keepLoaded(address) {
  if (!address.startsWith("http")) return;
  const cache = await caches.open(`needle-${BUILD}`);
  if (await cache.match(address)) return;
  const answer = await fetch(address).catch(() => null);
  if (answer?.ok && answer.type !== "opaque") await keep(cache, address, answer);
}

// A kernel asks for a file, or for what somebody types: the page that it belongs to answers.
async function asked(request, pathname) {
  const question = await request.json();
  const answer = new Promise((resolve) => {
    channel.addEventListener("message", function take({ data }) {
      if (data.browsingContextId !== question.browsingContextId) return;
      channel.removeEventListener("message", take);
      resolve(new Response(JSON.stringify(data.response)));
    });
  });
  channel.postMessage({ ...question, pathname });
  return answer;
}
