// Two pens with the same strokes: one draws on a canvas, one writes SVG. A picture is drawn once and shown or exported.

export const FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif";
const VECTOR_CELLS = 20000; // more cells than this are written as one image inside the SVG
const scratch = document.createElement("canvas").getContext("2d");

export function textWidth(text, { size = 12, bold = false, italic = false } = {}) {
  scratch.font = fontOf({ size, bold, italic });
  return scratch.measureText(text).width;
}

// A text no wider than `room`, cut with an ellipsis.
export function shorten(text, room, style) {
  if (textWidth(text, style) <= room) return text;
  const letters = [...text];
  while (letters.length > 1 && textWidth(letters.join("") + "…", style) > room) letters.pop();
  return letters.join("") + "…";
}

const fontOf = ({ size, bold, italic }) => `${italic ? "italic " : ""}${bold ? "bold " : ""}${size}px ${FONT}`;

export function cellImage(colours, columns, rows) {
  const image = document.createElement("canvas");
  image.width = columns;
  image.height = rows;
  const data = new ImageData(
    new Uint8ClampedArray(colours.buffer, colours.byteOffset, colours.length * 4),
    columns,
    rows,
  );
  image.getContext("2d").putImageData(data, 0, 0);
  return image;
}

// A canvas sized in CSS pixels, sharp on any screen.
export function canvasPen(canvas, width, height, ratio = window.devicePixelRatio || 1) {
  canvas.width = Math.ceil(width * ratio);
  canvas.height = Math.ceil(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return {
    rect(x, y, w, h, { fill, stroke, width: thick = 1, opacity = 1 }) {
      pen.globalAlpha = opacity;
      if (fill) {
        pen.fillStyle = fill;
        pen.fillRect(x, y, w, h);
      }
      if (stroke) {
        pen.strokeStyle = stroke;
        pen.lineWidth = thick;
        pen.strokeRect(x, y, w, h);
      }
      pen.globalAlpha = 1;
    },
    line(x1, y1, x2, y2, { stroke, width: thick = 1, opacity = 1 }) {
      pen.globalAlpha = opacity;
      pen.strokeStyle = stroke;
      pen.lineWidth = thick;
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.lineTo(x2, y2);
      pen.stroke();
      pen.globalAlpha = 1;
    },
    text(text, x, y, { size = 12, fill, anchor = "start", bold = false, italic = false, turn = 0 }) {
      pen.font = fontOf({ size, bold, italic });
      pen.fillStyle = fill;
      pen.textBaseline = "middle";
      pen.textAlign = { start: "left", middle: "center", end: "right" }[anchor];
      if (!turn) return pen.fillText(text, x, y);
      pen.save();
      pen.translate(x, y);
      pen.rotate(turn);
      pen.fillText(text, 0, 0);
      pen.restore();
    },
    cells(image, _colours, x, y, w, h) {
      pen.imageSmoothingEnabled = false;
      pen.drawImage(image, x, y, w, h);
    },
    part(image, fromX, fromY, columns, rows, x, y, w, h) {
      pen.imageSmoothingEnabled = false;
      pen.drawImage(image, fromX, fromY, columns, rows, x, y, w, h);
    },
    image(image, x, y, w, h) {
      pen.imageSmoothingEnabled = true;
      pen.drawImage(image, x, y, w, h);
    },
    shift(x, y, draw) {
      pen.save();
      pen.translate(x, y);
      draw();
      pen.restore();
    },
  };
}

export function svgPen(width, height) {
  const parts = [],
    number = (value) => String(Math.round(value * 100) / 100),
    hex = (pixel) => `#${[0, 8, 16].map((shift) => ((pixel >>> shift) & 255).toString(16).padStart(2, "0")).join("")}`;
  const escape = (text) =>
    text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);
  const tag = (name, attributes, content = "") => {
    const list = Object.entries(attributes)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([key, value]) => `${key}="${typeof value === "number" ? number(value) : escape(value)}"`);
    parts.push(`<${name} ${list.join(" ")}${content ? `>${content}</${name}>` : "/>"}`);
  };
  const faint = (opacity) => (opacity === 1 ? undefined : opacity);
  const picture = (image, x, y, w, h, style) =>
    tag("image", { x, y, width: w, height: h, preserveAspectRatio: "none", style, href: image });
  return {
    rect(x, y, w, h, { fill = "none", stroke, width: thick, opacity = 1 }) {
      tag("rect", {
        x,
        y,
        width: w,
        height: h,
        fill,
        stroke,
        "stroke-width": stroke && (thick || 1),
        opacity: faint(opacity),
      });
    },
    line(x1, y1, x2, y2, { stroke, width: thick = 1, opacity = 1 }) {
      tag("line", { x1, y1, x2, y2, stroke, "stroke-width": thick, opacity: faint(opacity) });
    },
    text(text, x, y, { size = 12, fill, anchor = "start", bold = false, italic = false, turn = 0 }) {
      const place = turn
        ? { transform: `translate(${number(x)} ${number(y)}) rotate(${number((turn * 180) / Math.PI)})` }
        : { x, y };
      tag(
        "text",
        {
          ...place,
          fill,
          "font-size": size,
          "text-anchor": anchor === "start" ? undefined : anchor,
          "dominant-baseline": "central",
          "font-weight": bold ? "bold" : undefined,
          "font-style": italic ? "italic" : undefined,
        },
        escape(text),
      );
    },
    cells(image, colours, x, y, w, h) {
      // equal neighbours of a row become one rectangle
      const { width: columns, height: rows } = image,
        wide = w / columns,
        high = h / rows;
      if (colours.length > VECTOR_CELLS)
        return picture(image.toDataURL("image/png"), x, y, w, h, "image-rendering:pixelated");
      parts.push('<g shape-rendering="crispEdges">');
      for (let i = 0; i < rows; i++)
        for (let j = 0, k; j < columns; j = k) {
          for (k = j + 1; k < columns && colours[i * columns + k] === colours[i * columns + j]; k++);
          tag("rect", {
            x: x + j * wide,
            y: y + i * high,
            width: (k - j) * wide,
            height: high,
            fill: hex(colours[i * columns + j]),
          });
        }
      parts.push("</g>");
    },
    part(image, fromX, fromY, columns, rows, x, y, w, h) {
      const piece = document.createElement("canvas");
      piece.width = columns;
      piece.height = rows;
      piece.getContext("2d").drawImage(image, fromX, fromY, columns, rows, 0, 0, columns, rows);
      picture(piece.toDataURL("image/png"), x, y, w, h, "image-rendering:pixelated");
    },
    image(image, x, y, w, h) {
      picture(image.src || image.toDataURL("image/png"), x, y, w, h);
    },
    shift(x, y, draw) {
      parts.push(`<g transform="translate(${number(x)} ${number(y)})">`);
      draw();
      parts.push("</g>");
    },
    written(title) {
      return `<svg xmlns="http://www.w3.org/2000/svg" width="${number(width)}" height="${number(height)}" viewBox="0 0 ${number(width)} ${number(height)}" font-family="${escape(FONT)}">\n<title>${escape(title)}</title>\n${parts.join("\n")}\n</svg>\n`;
    },
  };
}
