// Two colours, two meanings: amber is the weight α, blue is what is moved. Both ramps have the same lightness at the
// same step (equal steps in OKLCH lightness), so the two maps compare fairly and survive colour blindness and print.

const RAMPS = {
  light: {
    weight: ["#fbf9f5", "#efdab5", "#e6b879", "#d99546", "#c7731c", "#ad5604", "#8d3e0f", "#692d18", "#432019"],
    norm: ["#f5fafb", "#b5e6f2", "#76cfed", "#3eb3e6", "#1894d6", "#1c75bd", "#28589b", "#2a3e72", "#232847"],
  },
  dark: {
    weight: ["#1f1716", "#4b2214", "#73310a", "#954801", "#b46400", "#cc842a", "#e0a756", "#f1ca87", "#ffedc3"],
    norm: ["#18191f", "#1f2e52", "#1f477e", "#1064a5", "#0383c1", "#12a4d9", "#4ac3ea", "#81e1f6", "#c7f9ff"],
  },
};

// 256 colours as packed pixels (little-endian RGBA), for writing an image cell by cell.
function pixels(stops) {
  const rgb = stops.map((stop) => [1, 3, 5].map((i) => parseInt(stop.slice(i, i + 2), 16)));
  return Uint32Array.from({ length: 256 }, (_, step) => {
    const place = (step / 255) * (stops.length - 1), low = Math.min(Math.floor(place), stops.length - 2);
    const [r, g, b] = rgb[low].map((value, i) => Math.round(value + (rgb[low + 1][i] - value) * (place - low)));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

// A notebook has its own theme, whatever the system says: look at what is behind the frame, if we may.
function themeNow() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  try {
    for (let element = window.frameElement; element; element = element.parentElement) {
      const [r, g, b, a = 1] = getComputedStyle(element).backgroundColor.match(/[\d.]+/g).map(Number);
      if (a > 0.5) return r * 0.299 + g * 0.587 + b * 0.114 < 128 ? "dark" : "light";
    }
  } catch { /* another origin: not ours to see */ }
  return dark ? "dark" : "light";
}
