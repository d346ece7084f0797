// What JupyterLite lacks when a page is loaded again: which notebook was open, and the widgets that it holds.

// Its kernels never answer which widgets they have, and JupyterLab would wait for that with those of the notebook.
// A kernel that has some tells of them in another way, so that here each has none.
const noneOfItsOwn = async () => ({ content: { status: "ok", comms: {} } });

const found = setInterval(async () => {
  const { jupyterapp } = window;
  if (!jupyterapp) return;
  clearInterval(found);
  await jupyterapp.restored;
  const { shell } = jupyterapp;
  const answer = ({ session }) => {
    if (session?.kernel) session.kernel.requestCommInfo = noneOfItsOwn;
  };
  const note = () => {
    const { context, sessionContext } = shell.currentWidget ?? {};
    if (sessionContext) {
      sessionContext.kernelChanged.connect(answer);
      answer(sessionContext);
    }
    // JupyterLite takes the notebook out of the address.
    history.replaceState(null, "", context ? `?path=${encodeURIComponent(context.path)}` : location.pathname);
  };
  shell.currentChanged.connect(note);
  note();
}, 100);
