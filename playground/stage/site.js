// Whether this is a page of the site, where no server but one of files is, and where its other parts are.

const root = document.querySelector("meta[name=site]")?.content;

// The address of a part of the site; nothing where the app's server is.
export function inSite(part = "") {
  return root && new URL(root + part, document.baseURI).href;
}
