// Amber is the attention weight α, blue any other measure. Both ramps have the same lightness at the same step (equal steps in OKLCH
// lightness), so two maps compare fairly and survive colour blindness and print. Differences go from blue over the ground
// to red, again in equal steps of lightness to both sides.

const RAMPS = {
  light: {
    weight: ["#fbf9f5", "#efdab5", "#e6b879", "#d99546", "#c7731c", "#ad5604", "#8d3e0f", "#692d18", "#432019"],
    norm: ["#f5fafb", "#b5e6f2", "#76cfed", "#3eb3e6", "#1894d6", "#1c75bd", "#28589b", "#2a3e72", "#232847"],
    signed: ["#053061", "#2166ac", "#4393c3", "#92c5de", "#f7f7f7", "#f4a582", "#d6604d", "#b2182b", "#67001f"],
  },
  dark: {
    weight: ["#1f1716", "#4b2214", "#73310a", "#954801", "#b46400", "#cc842a", "#e0a756", "#f1ca87", "#ffedc3"],
    norm: ["#18191f", "#1f2e52", "#1f477e", "#1064a5", "#0383c1", "#12a4d9", "#4ac3ea", "#81e1f6", "#c7f9ff"],
    signed: ["#c2e3f5", "#7cbbe0", "#3f8cc4", "#265a86", "#1b1d24", "#8a3a2c", "#c95b45", "#ea8f74", "#ffd0bf"],
  },
};
const INKS = {
  light: {
    ground: "#ffffff",
    text: "#1b1e28",
    muted: "#565c6b",
    line: "#e3e5ea",
    accent: "#9a3b00",
    weight: "#d97a06",
    norm: "#1177b8",
    more: "#b2182b",
    less: "#2166ac",
  },
  dark: {
    ground: "#14161d",
    text: "#eceef4",
    muted: "#a4aaba",
    line: "#2b2f3b",
    accent: "#f0a860",
    weight: "#e9a13b",
    norm: "#2fb3dc",
    more: "#ea8f74",
    less: "#7cbbe0",
  },
};

export const inkOf = (theme) => INKS[theme];
export const stopsOf = (map, theme) => RAMPS[theme][map.signed ? "signed" : map.tone];
export const toneOf = (map, value, ink) => (map.signed ? (value < 0 ? ink.less : ink.more) : ink[map.tone]);

// 256 colours as packed pixels (little-endian RGBA).
const made = new Map();
export function pixels(stops) {
  if (!made.has(stops)) {
    const rgb = stops.map((stop) => [1, 3, 5].map((i) => parseInt(stop.slice(i, i + 2), 16)));
    made.set(
      stops,
      Uint32Array.from({ length: 256 }, (_, step) => {
        const place = (step / 255) * (stops.length - 1),
          low = Math.min(Math.floor(place), stops.length - 2);
        const [r, g, b] = rgb[low].map((value, i) => Math.round(value + (rgb[low + 1][i] - value) * (place - low)));
        return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
      }),
    );
  }
  return made.get(stops);
}

// The colour of every number, against the end of the scale; a signed scale has 0 in its middle.
export function paint(values, top, signed, stops) {
  const ramp = pixels(stops),
    colours = new Uint32Array(values.length);
  const zero = signed ? 127.5 : 0,
    factor = top > 0 ? (signed ? 127.5 : 255) / top : 0;
  for (let i = 0; i < values.length; i++)
    colours[i] = ramp[Math.max(0, Math.min(255, Math.round(zero + values[i] * factor)))];
  return colours;
}

export const themeOf = (root) => root.ownerDocument.documentElement.dataset.theme || "light";

// A notebook has its own theme, whatever the system says: read what is behind the frame, if we may.
export function themeNow() {
  try {
    for (let element = window.frameElement; element; element = element.parentElement) {
      const [r, g, b, a = 1] = getComputedStyle(element)
        .backgroundColor.match(/[\d.]+/g)
        .map(Number);
      if (a > 0.5) return r * 0.299 + g * 0.587 + b * 0.114 < 128 ? "dark" : "light";
    }
  } catch {
    /* another origin: not ours to see */
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
