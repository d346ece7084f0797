// JupyterLite's page loads this first: Python starts while JupyterLab opens, and what goes wrong is told.

const HERE = document.currentScript.src;
const KERNEL = new URL("python/kernel.js", HERE);
const PlainWorker = window.Worker;

const WAYS_OUT = `<a href="../../book/index.html">Read the lecture in the book</a>, or open it in Colab: its first lines link there.`;
const TROUBLES = {
  webassembly: `This browser has no WebAssembly, so Python cannot run here. Take another browser. ${WAYS_OUT}`,
  storage: "This browser keeps nothing for this page, as in some private windows: download your work (File → Download) before you close it.",
  room: "There is no room left to save your work: download it (File → Download), then delete files in the list on the left, or free room on your disk.",
  kernel: "Python has stopped. What you wrote is still here. Save it, then choose Kernel → Restart Kernel, and run the cells again.",
};

function say(trouble, detail = "") {
  const line = document.createElement("p");
  line.className = "trouble";
  line.setAttribute("role", "alert");
  line.innerHTML = `<span>${TROUBLES[trouble]}</span> <small></small> <button>Close</button>`;
  line.querySelector("small").textContent = detail;
  line.querySelector("button").onclick = () => line.remove();
  document.querySelector(`.trouble[data-of="${trouble}"]`)?.remove();
  line.dataset.of = trouble;
  document.documentElement.append(line);
}

// Python

function startKernel() {
  const worker = new PlainWorker(KERNEL);
  worker.addEventListener("message", ({ data }) => data?.trouble && say("kernel", data.trouble));
  worker.addEventListener("error", ({ message }) => say("kernel", message));
  return worker;
}

let started = typeof WebAssembly === "object" ? startKernel() : say("webassembly");

window.Worker = function (address, options) {
  if (!String(address).includes("pyodide-kernel-extension")) return new PlainWorker(address, options);
  const worker = started ?? startKernel();
  started = null;
  worker.postMessage({ script: String(address) });
  return worker;
};

// What is written here

async function tryToKeep() {
  await new Promise((resolve, reject) => {
    const asked = indexedDB.open("needle-room");
    asked.onsuccess = () => resolve(asked.result.close());
    asked.onerror = () => reject(asked.error);
  });
  const { quota, usage } = (await navigator.storage?.estimate?.()) ?? {};
  if (quota - usage < 5e6) say("room");
}
tryToKeep().catch(() => say("storage"));

addEventListener("visibilitychange", () => {
  const { commands } = window.jupyterapp ?? {}; // a browser may forget a page that nobody sees
  if (document.hidden && commands?.isEnabled("docmanager:save-all")) commands.execute("docmanager:save-all");
});

// A phone has no room for the list of files beside a lecture.
const arrived = setInterval(() => {
  if (!window.jupyterapp) return;
  clearInterval(arrived);
  window.jupyterapp.restored.then(() => innerWidth < 760 && window.jupyterapp.shell.collapseLeft());
}, 100);
