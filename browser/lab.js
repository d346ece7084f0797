// JupyterLite's page loads this first: Python starts while JupyterLab opens, and what goes wrong is told.

const HERE = document.currentScript.src;
const KERNEL = new URL("python/kernel.js", HERE);
const PlainWorker = window.Worker;

const WAYS_OUT = `<a href="../../book/index.html">Read the lecture in the book</a>, or open it in Colab: its first lines link there.`;
const TROUBLES = {
  wasm: `This browser has no WebAssembly, so Python cannot run here. Take another browser. ${WAYS_OUT}`,
  storage: "This browser keeps nothing for this page, as in some private windows: download your work (File → Download) before you close it.",
  room: "There is no room left to save your work: download it (File → Download), then free room on your disk.",
  kernel: "Python has stopped. What you wrote is still here. Save it, then choose Kernel → Restart Kernel, and run the cells again.",
};

const lines = document.createElement("div");
lines.id = "troubles";
document.documentElement.append(lines);

function say(trouble, detail = "") {
  document.getElementById(trouble)?.remove();
  const line = document.createElement("p");
  line.id = trouble;
  line.role = "alert";
  line.innerHTML = `${TROUBLES[trouble]} <button>Close</button><small></small>`;
  line.querySelector("small").textContent = detail;
  line.querySelector("button").onclick = () => line.remove();
  lines.append(line);
}

// Python

function startKernel() {
  const worker = new PlainWorker(KERNEL);
  worker.addEventListener("message", ({ data }) => data?.trouble && say("kernel", data.trouble));
  worker.addEventListener("error", ({ message }) => say("kernel", message));
  return worker;
}

let started = typeof WebAssembly === "object" ? startKernel() : say("wasm");

window.Worker = function (address, options) {
  if (!String(address).includes("pyodide-kernel-extension")) return new PlainWorker(address, options);
  const worker = started ?? startKernel();
  started = null;
  worker.postMessage({ script: String(address) });
  return worker;
};

// What is written here

// Resolves if something can be written.
function write() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("needle-room");
    asked.onerror = () => reject(asked.error);
    asked.onupgradeneeded = () => asked.result.createObjectStore("room");
    asked.onsuccess = () => {
      const writing = asked.result.transaction("room", "readwrite");
      writing.oncomplete = resolve;
      writing.onabort = () => reject(writing.error);
      writing.objectStore("room").put(new Uint8Array(1e6), "once");
    };
  });
}
const isFull = (error) => error?.name === "QuotaExceededError";
write().catch((error) => say(isFull(error) ? "room" : "storage"));
addEventListener("unhandledrejection", ({ reason }) => isFull(reason) && say("room"));

addEventListener("visibilitychange", () => {
  const { commands } = window.jupyterapp ?? {}; // a browser may forget a page that nobody sees
  if (document.hidden && commands?.isEnabled("docmanager:save-all")) commands.execute("docmanager:save-all");
});

// JupyterLab's page

const app = new Promise((resolve) => {
  const found = setInterval(() => {
    if (!window.jupyterapp) return;
    clearInterval(found);
    resolve(window.jupyterapp);
  }, 100);
});

// JupyterLite's kernels never answer which widgets they have, and JupyterLab would wait for that with those of the
// notebook. A kernel that has some tells of them in another way, so that here each has none.
const noneOfItsOwn = async () => ({ content: { status: "ok", comms: {} } });

function answer({ session }) {
  if (session?.kernel) session.kernel.requestCommInfo = noneOfItsOwn;
}

app.then(async ({ restored, shell }) => {
  await restored;
  const note = () => {
    const { context, sessionContext } = shell.currentWidget ?? {};
    if (sessionContext) {
      sessionContext.kernelChanged.connect(answer);
      answer(sessionContext);
    }
    // JupyterLite takes the notebook out of the address, and a page that is loaded again has to open it.
    history.replaceState(null, "", context ? `?path=${encodeURIComponent(context.path)}` : location.pathname);
  };
  shell.currentChanged.connect(note);
  note();
});

// A phone has no room for what is beside a lecture.
if (innerWidth < 760) {
  app.then(({ shell, commands }) => {
    const opened = setInterval(async () => {
      if (!shell.currentWidget) return;
      clearInterval(opened);
      await shell.currentWidget.sessionContext?.ready; // the list opens before
      shell.collapseLeft();
      commands.execute("application:toggle-side-tabbar", { side: "right" });
    }, 100);
  });
}
