// A page that carries its own data: chunks are base64 in script elements, decoded when they are shown.

import { mount } from "./view.js";

function chunk(index) {
  const text = atob(document.getElementById(`chunk-${index}`).textContent),
    bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i); // many times faster than Uint8Array.from
  return bytes;
}

const root = document.getElementById("view"),
  fallback = document.getElementById("fallback");
root.hidden = false;
mount(root, JSON.parse(document.getElementById("data").textContent), { chunk: async (index) => chunk(index) }).then(
  () => {
    fallback.remove();
    root.dataset.ready = "yes";
  },
  (error) => {
    root.hidden = true;
    fallback.prepend(
      `The interactive view could not start in this browser (${error.message}). The same numbers as text:\n\n`,
    );
    throw error;
  },
);
