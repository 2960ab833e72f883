// Shows the rows of an audit one by one and exports the verdicts. Everything that comes from
// the report is put in as text, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const box = document.getElementById("row");
  const progress = document.getElementById("progress");
  const buttons = [...document.querySelectorAll("[data-verdict]")];
  const KEYS = data.keys;
  const STORE = `dstfuzz-audit-${data.sample}-${data.judge}`;
  const verdicts = { ...data.verdicts, ...stored() };
  let place = Math.max(next(0), 0);

  // A browser may refuse to keep anything for a file; then the export alone keeps it.
  function stored() {
    try {
      return JSON.parse(localStorage.getItem(STORE)) ?? {};
    } catch {
      return {};
    }
  }

  function store() {
    try {
      localStorage.setItem(STORE, JSON.stringify(verdicts));
    } catch {
      progress.textContent += " (this browser keeps nothing: export before you leave)";
    }
  }

  // The place of the first row from `start` on without a verdict, -1 where there is none.
  function next(start) {
    return data.rows.findIndex((row, index) => index >= start && !(row.id in verdicts));
  }

  function spans(parts) {
    const line = document.createElement("dd");
    line.dir = "auto";
    for (const part of parts) {
      if (typeof part === "string") {
        line.append(part);
        continue;
      }
      for (const [tag, text] of [["del", part[0]], ["ins", part[1]]]) {
        if (!text) continue;
        const mark = document.createElement(tag);
        mark.textContent = text;
        line.append(mark);
      }
    }
    return line;
  }

  function term(text) {
    const name = document.createElement("dt");
    name.textContent = text;
    return name;
  }

  function draw() {
    const row = data.rows[place];
    const judged = Object.keys(verdicts).length;
    progress.textContent = `Row ${place + 1} of ${data.rows.length} (${row.id}); ${judged} judged`;
    box.replaceChildren();
    for (const [who, parts] of row.said) box.append(term(who), spans(parts));
    box.append(term("clean"), spans([row.clean]), term("edited"), spans(row.edited));
    for (const note of row.notes) box.append(term("note"), spans([note]));
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(verdicts[row.id] === button.dataset.verdict));
    }
  }

  function go(to) {
    if (to >= 0 && to < data.rows.length) place = to;
    draw();
  }

  function say(verdict) {
    verdicts[data.rows[place].id] = verdict;
    go(next(place + 1));
    store();
  }

  function save() {
    const rows = data.rows.filter((row) => row.id in verdicts);
    const lines = rows.map(({ id }) =>
      JSON.stringify({ id, sample: data.sample, verdict: verdicts[id] }),
    );
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.map((line) => line + "\n").join("")]));
    link.download = `${data.judge}.jsonl`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  for (const button of buttons) {
    button.addEventListener("click", () => say(button.dataset.verdict));
  }
  document.getElementById("back").addEventListener("click", () => go(place - 1));
  document.getElementById("skip").addEventListener("click", () => go(place + 1));
  document.getElementById("export").addEventListener("click", save);
  document.addEventListener("keydown", (event) => {
    // A key that is held down is one answer.
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    if (key in KEYS) say(KEYS[key]);
    else if (key === "b") go(place - 1);
    else if (key === "s") go(place + 1);
  });
  draw();
})();
