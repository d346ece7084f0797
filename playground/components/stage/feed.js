// Hands each message to the stage (stage.js), which is another element of the page: so the stage and its code
// travel once, and it cannot blink when a message is late.
export default function ({ data }) {
  globalThis.needleMessage = data;
  globalThis.dispatchEvent(new Event("needle-message"));
}
