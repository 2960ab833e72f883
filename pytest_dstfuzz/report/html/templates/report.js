// Draws the violations, a page of them at a time. Everything that comes from the report is
// put in as text, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("filters");
  const list = document.getElementById("list");
  const count = document.getElementById("count");
  const empty = document.getElementById("empty");
  const pageInput = document.getElementById("page");
  const pages = document.getElementById("pages");
  const heading = document.getElementById("violations-heading");
  const steps = document.querySelectorAll("[data-step]");
  // Reports of before have no weaknesses to choose from.
  const FIELDS = ["q", "weakness", "relation", "failure", "transformation", "domain", "slot", "cause", "order", "size"]
    .filter((name) => form.elements[name]);
  const DEFAULTS = Object.fromEntries(FIELDS.map((name) => [name, form.elements[name].value]));
  const CAUSES = {
    turn: "caused by this turn",
    context: "caused by earlier turns",
    both: "caused by this and earlier turns",
    unknown: "cause not known",
  };
  // Violations shown below a weakness.
  const FEW = 5;
  const dialogues = new Map();
  for (const turn of data.turns) {
    if (!dialogues.has(turn.dialogue)) dialogues.set(turn.dialogue, new Map());
    const known = dialogues.get(turn.dialogue);
    if (!known.has(turn.index)) known.set(turn.index, turn);
  }
  for (const [weakness, members] of data.weaknesses) {
    for (const place of members) data.violations[place].weakness = weakness;
  }
  let found = data.violations;
  let page = 1;

  // -- making elements ---------------------------------------------------------------

  function make(tag, options = {}, ...children) {
    const element = document.createElement(tag);
    if (options.class) element.className = options.class;
    if (options.text !== undefined) element.textContent = options.text;
    for (const [name, value] of Object.entries(options.set ?? {})) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function hidden(text) {
    return make("span", { class: "hidden-text", text });
  }

  function marked(tag, before, text) {
    return make(tag, {}, hidden(` ${before}: `), make("bdi", { text }), hidden(" "));
  }

  function drawSpans(tag, spans) {
    const parts = spans.flatMap((span) => {
      if (typeof span === "string") return [document.createTextNode(span)];
      const [before, after] = span;
      return [
        ...(before ? [marked("del", "removed", before)] : []),
        ...(after ? [marked("ins", "added", after)] : []),
      ];
    });
    return make(tag, { set: { dir: "auto" } }, ...parts);
  }

  function table(label, heads, rows) {
    const head = make("tr", {}, ...heads.map((text) => make("th", { text, set: { scope: "col" } })));
    const body = rows.map((row) => make("tr", {}, ...row.map((text) => make("td", { text }))));
    const parts = [make("thead", {}, head), make("tbody", {}, ...body)];
    const set = { tabindex: "0", role: "group", "aria-label": label };
    return make("div", { class: "scroll", set }, make("table", {}, ...parts));
  }

  // -- one violation -----------------------------------------------------------------

  function said(violation, turn) {
    const rows = make("dl", { class: "said" });
    // Rounds of which some were moved, as the tracker saw them.
    for (const [mark, system, user] of violation.rounds ?? []) {
      if (system) {
        rows.append(
          make("dt", { text: "system" }),
          make("dd", { class: "system", text: system, set: { dir: "auto" } }),
        );
      }
      rows.append(
        make("dt", { text: "user" }),
        make("dd", { set: { dir: "auto" } }, make(mark ? "ins" : "span", { text: user }),
          ...(mark ? [make("span", { class: "chip", text: mark })] : [])),
      );
    }
    if (violation.rounds) return rows;
    if (turn.system) {
      rows.append(
        make("dt", { text: "system" }),
        make("dd", { class: "system", text: turn.system, set: { dir: "auto" } }),
      );
    }
    rows.append(make("dt", { text: "user" }), drawSpans("dd", violation.spans));
    return rows;
  }

  // What alone breaks the turn, where not all of its edits are needed.
  function blamed(violation) {
    if (!violation.blames) return [];
    const { what, spans, context } = violation.blames;
    const rows = make("dl", { class: "said blamed" });
    rows.append(make("dt", { text: "blames" }), make("dd", { class: "system", text: what }));
    for (const [index, earlier] of context) {
      rows.append(make("dt", { text: `turn ${index}` }), drawSpans("dd", earlier));
    }
    rows.append(make("dt", { text: "user" }), drawSpans("dd", spans));
    return [rows];
  }

  // Both replies side by side, what is gone marked in the one and what is new in the other.
  function replies(violation) {
    return violation.replies.flatMap(([before, after, why]) => [
      make("dl", { class: "replies" },
        make("div", {}, make("dt", { text: "reply before" }), drawSpans("dd", before)),
        make("div", {}, make("dt", { text: "reply now" }), drawSpans("dd", after))),
      ...why.map((text) => make("p", { class: "over", text })),
    ]);
  }

  // What became of each call, as code with the arguments marked that changed.
  function calls(violation) {
    return violation.calls.map(([what, spans, notes]) =>
      make("p", { class: "call" },
        ...(what ? [make("span", { class: "what", text: `${what} ` })] : []),
        drawSpans("code", spans),
        ...notes.map((text) => make("span", { class: "chip", text })),
      ));
  }

  function changes(violation) {
    if (violation.calls) return make("div", { class: "changes" }, ...calls(violation));
    if (violation.replies) return make("div", { class: "changes" }, ...replies(violation));
    const rows = violation.changes.map(([slot, before, after, carried, expected, label]) =>
      make("li", {},
        make("span", { class: "mono", text: slot }),
        make("span", {},
          make("span", { class: "was", text: before ?? "(none)" }),
          hidden(" became "),
          make("span", { text: " \u2192 ", set: { "aria-hidden": "true" } }),
          make("strong", { text: after ?? "(none)" })),
        ...(expected ? [make("span", { class: "chip", text: `expected ${expected}` })] : []),
        ...(carried ? [make("span", { class: "chip", text: "had changed at an earlier turn" })] : []),
        ...(label ? [make("span", { class: "chip", text: label })] : []),
      ));
    return make("ul", { class: "changes", set: { "aria-label": `changed ${data.words.slot}s` } }, ...rows);
  }

  function conversation(violation, turn) {
    const perturbed = new Map();
    for (let place = violation.context ?? null; place !== null;) {
      const [before, index, spans] = data.earlier[place];
      perturbed.set(index, spans);
      place = before;
    }
    const rows = make("dl", { class: "said" });
    const earlier = dialogues.get(turn.dialogue);
    for (let index = 0; index < turn.index; index += 1) {
      const before = earlier.get(index);
      if (before?.system) {
        rows.append(
          make("dt", { text: "system" }),
          make("dd", { class: "system", text: before.system, set: { dir: "auto" } }),
        );
      }
      const spans = perturbed.get(index) ?? (before ? [before.user] : null);
      if (spans) rows.append(make("dt", { text: `turn ${index}` }), drawSpans("dd", spans));
    }
    return rows;
  }

  // A command whose parts have something between them.
  function command(title, texts, between) {
    const text = texts.map((part, place) => part + (between[place] ?? "")).join("");
    const words = text.split(" ").flatMap((word) => [make("span", { text: word }), " "]);
    return [make("h4", { text: title }), make("p", {}, make("code", { class: "shell" }, ...words))];
  }

  function more(violation, turn) {
    const parts = [];
    if (turn.index > 0) {
      parts.push(make("h4", { text: `Earlier turns, as ${data.words.who} saw them` }), conversation(violation, turn));
    }
    const edits = violation.edits.map(([name, operator, before, after, place]) =>
      [name, operator, before || "(nothing)", after || "(nothing)", String(place)]);
    parts.push(
      make("h4", { text: "Edits, in the order in which they were made" }),
      table("edits", ["transformation", "operator", "before", "after", "at"], edits),
    );
    if (violation.legend) {
      parts.push(make("ul", { class: "list" }, ...violation.legend.map((text) => make("li", { text }))));
    }
    const clean = `The ${data.words.what} at the clean turn`;
    if (turn.called) {
      parts.push(make("h4", { text: clean }), ...turn.called.map((text) => make("p", { class: "call" }, make("code", { text }))));
    } else if (turn.state) {
      parts.push(make("h4", { text: clean }));
      parts.push(turn.state.length
        ? table(data.words.what, [data.words.slot, "value"], turn.state)
        : make("p", { text: "empty" }));
    }
    const word = turn.word ?? turn.id;
    parts.push(
      ...command("To repeat it", data.commands.repeat, [violation.variant, word]),
      ...command("To accept it", data.commands.accept, [word, turn.name ?? turn.id]),
    );
    return parts;
  }

  function draw(violation) {
    const turn = data.turns[violation.turn];
    const [words, characters] = violation.rates;
    const about = [violation.about, ...(violation.moves ?? [])].filter(Boolean);
    const header = make("header", {},
      make("h3", { class: "mono", text: turn.id }),
      ...[violation.relation, violation.failure].filter(Boolean).map((text) => make("span", { class: "chip", text })),
      make("span", { class: "chip", text: `variant ${violation.variant}` }),
      ...(violation.note ? [make("span", { class: "chip", text: violation.note })] : []),
      make("span", { class: "chip", text: CAUSES[violation.cause] ?? violation.cause }),
      make("span", {
        class: "rates",
        text: `edit rate: words ${words.toFixed(3)}, characters ${characters.toFixed(3)}`,
      }),
    );
    const rest = make("details", {}, make("summary", {}, "Conversation, edits and commands",
      hidden(` of ${turn.id}, variant ${violation.variant}`)));
    rest.addEventListener("toggle", () => rest.append(...more(violation, turn)), { once: true });
    return make("li", {},
      make("article", { class: "violation" }, header,
        ...about.map((text) => make("p", { class: "over", text })), said(violation, turn), ...blamed(violation), changes(violation),
        ...(violation.likely ? [make("p", { class: "over", text: violation.likely })] : []),
        ...(violation.doubts ?? []).map((text) => make("p", { class: "over", text })), rest));
  }

  // The plainest violations of a weakness, and where the others are, in place of their names.
  function unfold(details) {
    const weakness = details.dataset.weakness;
    const members = data.violations.filter((violation) => violation.weakness === weakness);
    const parts = [make("ol", { class: "violations" }, ...members.slice(0, FEW).map(draw))];
    if (members.length > FEW) {
      const set = { href: `#${new URLSearchParams({ weakness })}`, "data-filter": "" };
      parts.push(make("p", {}, make("a", { text: `All ${members.length} in the list`, set })));
    }
    details.lastElementChild.replaceWith(...parts);
  }

  // -- filters and pages -------------------------------------------------------------

  function searched(violation) {
    if (violation.searched === undefined) {
      const turn = data.turns[violation.turn];
      const side = (place) =>
        violation.spans.map((span) => (typeof span === "string" ? span : span[place])).join("");
      const rounds = (violation.rounds ?? []).flat();
      const said = (violation.replies ?? []).flatMap(([before, after]) => [...before, ...after].flat());
      const called = (violation.calls ?? []).flatMap(([what, spans, notes]) => [what, ...spans.flat(), ...notes]);
      violation.searched = [turn.id, turn.system, side(0), side(1), ...rounds, ...said, ...called].join("\n").toLowerCase();
    }
    return violation.searched;
  }

  // Without those that had changed at an earlier turn.
  function changedSlots(violation) {
    return violation.changes.filter((change) => !change[3]).map(([slot]) => slot);
  }

  // Of tool calls the names of tools say it, as these may hold any sign.
  const changedDomains = (violation) => violation.tools ?? changedSlots(violation).map(domainOf);
  const domainOf = (slot) => (slot.includes("-") ? slot.slice(0, slot.indexOf("-")) : "");

  function wanted(values) {
    const text = values.q.trim().toLowerCase();
    const tests = [];
    if (values.weakness) tests.push((violation) => violation.weakness === values.weakness);
    if (values.relation) tests.push((violation) => violation.relation === values.relation);
    if (values.failure) tests.push((violation) => (violation.failure ?? "changed") === values.failure);
    if (values.cause) tests.push((violation) => violation.cause === values.cause);
    if (values.transformation) {
      tests.push((violation) => violation.edits.some(([name]) => name === values.transformation));
    }
    if (values.slot) tests.push((violation) => changedSlots(violation).includes(values.slot));
    if (values.domain) {
      tests.push((violation) => changedDomains(violation).includes(values.domain));
    }
    if (text) tests.push((violation) => searched(violation).includes(text));
    return (violation) => tests.every((test) => test(violation));
  }

  function values() {
    return Object.fromEntries(FIELDS.map((name) => [name, form.elements[name].value]));
  }

  function filter() {
    const now = values();
    found = data.violations.filter(wanted(now));
    if (now.order === "dialogue") {
      found.sort((one, other) => one.turn - other.turn || one.variant - other.variant);
    }
    if (now.order === "edits") {
      const size = ({ rates }) => rates[0] + rates[1];
      found.sort((one, other) => size(other) - size(one));
    }
  }

  function show(number) {
    const size = Number(form.elements.size.value);
    const last = Math.max(1, Math.ceil(found.length / size));
    page = Math.min(Math.max(1, number), last);
    const first = (page - 1) * size;
    const shown = found.slice(first, first + size);
    list.replaceChildren(...shown.map(draw));
    const whole = data.violations.length.toLocaleString("en");
    const total = found.length.toLocaleString("en");
    const of = found.length === data.violations.length ? `${whole} violations` : `${total} of ${whole} violations`;
    count.textContent = found.length ? `${of}, showing ${first + 1} to ${first + shown.length}` : of;
    empty.hidden = found.length > 0;
    pageInput.value = page;
    pageInput.max = last;
    pages.textContent = `of ${last}`;
    for (const button of steps) {
      const step = Number(button.dataset.step);
      button.setAttribute("aria-disabled", String(step < 0 ? page === 1 : page === last));
    }
  }

  function remember() {
    const now = values();
    const query = new URLSearchParams(FIELDS.filter((name) => now[name] !== DEFAULTS[name]).map((name) => [name, now[name]]));
    if (page > 1) query.set("page", page);
    history.replaceState(null, "", query.size ? `#${query}` : "#violations");
  }

  // What the address asks for: a link in a table, or a page that was kept.
  function recall(hash) {
    const query = new URLSearchParams(hash.slice(1));
    if (!FIELDS.some((name) => query.has(name)) && !query.has("page")) return false;
    for (const name of FIELDS) {
      form.elements[name].value = query.get(name) ?? DEFAULTS[name];
      if (form.elements[name].value === "" && DEFAULTS[name]) form.elements[name].value = DEFAULTS[name];
    }
    filter();
    show(Number(query.get("page")) || 1);
    return true;
  }

  function options(name, texts) {
    const known = [...new Set(texts)].sort();
    form.elements[name].append(...known.map((text) => make("option", { text, set: { value: text } })));
  }

  function turnTo(number) {
    show(number);
    remember();
    heading.scrollIntoView();
  }

  const slots = data.violations.flatMap(changedSlots);
  options("transformation", data.violations.flatMap(({ edits }) => edits.map(([name]) => name)));
  if (form.elements.slot) {
    options("slot", slots);
    options("domain", data.violations.flatMap(changedDomains).filter(Boolean));
  }

  for (const details of document.querySelectorAll("[data-weakness]")) {
    details.addEventListener("toggle", () => unfold(details), { once: true });
  }

  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { filter(); show(1); remember(); }, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { filter(); show(1); remember(); }));
  for (const button of steps) {
    const step = Number(button.dataset.step);
    button.addEventListener("click", () => {
      if (button.getAttribute("aria-disabled") !== "true") turnTo(page + step);
    });
  }
  pageInput.addEventListener("change", () => turnTo(Number(pageInput.value) || 1));
  window.addEventListener("hashchange", () => recall(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-filter]");
    if (!link || !recall(link.hash)) return;
    event.preventDefault();
    remember();
    heading.focus();
    heading.scrollIntoView();
  });

  if (!recall(location.hash)) {
    filter();
    show(1);
  }
  list.setAttribute("aria-busy", "false");
})();
