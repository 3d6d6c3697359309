"use strict";

/* What the page does better with a script: counters that move, photos dropped and seen before they
   are sent, answers without leaving the page (files and the key stay in the form). It works without. */

const EVERY = 2000; // ms between two looks at the counters

function make(name, attributes = {}, text = "") {
  const node = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
  node.textContent = text;
  return node;
}

/* Counters. */

async function look() {
  const note = document.getElementById("live-note");
  if (!note || document.hidden) return;
  try {
    const key = document.getElementById("key");
    const headers = key && key.value ? { "X-API-Key": key.value } : {};
    const answer = await fetch("/live", { headers, cache: "no-store", signal: AbortSignal.timeout(5 * EVERY) });
    if (!answer.ok) throw new Error(answer.statusText);
    for (const [name, text] of Object.entries(await answer.json())) {
      const place = document.querySelector(`[data-live="${CSS.escape(name)}"]`);
      if (place && place.textContent !== text) place.textContent = text;
    }
    note.textContent = note.dataset.every;
  } catch {
    note.textContent = note.dataset.lost;
  }
}

async function watch() {
  await look();
  setTimeout(watch, EVERY);
}

/* Files: what was chosen is seen, and can be taken out again. */

function showFile(input) {
  const box = input.closest(".drop");
  const old = box && box.querySelector("img");
  if (old) { URL.revokeObjectURL(old.src); old.remove(); }
  const next = input.parentElement.querySelector(`.remove[data-of="${input.id}"]`);
  if (next) next.remove();
  for (const words of input.closest(".way").querySelectorAll(".again")) words.hidden = input.files.length > 0;
  if (!input.files.length) return;
  if (box && input.files[0].type.startsWith("image/")) {
    const picture = make("img", { alt: "The photo that was chosen", src: URL.createObjectURL(input.files[0]) });
    picture.addEventListener("error", () => picture.remove());
    box.prepend(picture);
  }
  const remove = make("button", { type: "button", class: "remove", "data-of": input.id }, "Remove the file");
  remove.addEventListener("click", () => { input.value = ""; showFile(input); input.focus(); });
  input.after(remove);
}

function improveFiles(main) {
  for (const input of main.querySelectorAll("input[type=file]")) {
    if (!input.dataset.seen) {
      input.dataset.seen = "yes";
      input.addEventListener("change", () => showFile(input));
    }
    showFile(input);
  }
  for (const box of main.querySelectorAll(".drop")) {
    const light = (on) => () => box.classList.toggle("over", on);
    box.addEventListener("dragover", light(true));
    for (const end of ["dragleave", "drop", "dragend"]) box.addEventListener(end, light(false));
  }
}

/* Answers. */

/* A page that comes from the server knows no files and no key: those of the old one go on. */
function keepFilled(before, after) {
  for (const fresh of after.querySelectorAll("input[type=file], input[type=password]")) {
    const old = before.querySelector(`#${CSS.escape(fresh.id)}`);
    if (!old || !old.value) continue;
    old.removeAttribute("aria-invalid");
    for (const { name, value } of fresh.attributes) old.setAttribute(name, value);
    fresh.replaceWith(old);
  }
}

function focusFirst(main) {
  const place = main.querySelector("[data-focus]");
  if (!place) return;
  place.focus({ preventScroll: true });
  (place.closest("section") || place).scrollIntoView({ block: "start" });
}

/* The service says that it does not answer now; the form stays as it is. */
class Declined extends Error {}

async function send(form, button) {
  const body = new FormData(form, button);
  const answer = await fetch(form.action, { method: "POST", body, cache: "no-store" });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [before, after] = [document.querySelector("main"), page.querySelector("main")];
  if (!after || !after.querySelector("form")) {
    throw new Declined(after ? after.querySelector(".lead").textContent : "");
  }
  keepFilled(before, after);
  for (const place of after.querySelectorAll("[autofocus]")) place.removeAttribute("autofocus");
  before.replaceWith(after);
  document.title = page.title;
  improve(after);
  focusFirst(after);
  look();
}

function improveForm(main) {
  const form = main.querySelector("form");
  if (!form) return;
  form.addEventListener("submit", async (event) => {
    const button = event.submitter || form.querySelector("button.main");
    if (button.value === "card") return; // another page
    event.preventDefault();
    if (button.getAttribute("aria-disabled")) return;
    const words = button.textContent;
    button.setAttribute("aria-disabled", "true");
    button.textContent = "One moment …";
    try {
      await send(form, button);
    } catch (error) {
      button.removeAttribute("aria-disabled");
      button.textContent = words;
      const said = form.querySelector("#no-answer") || make("p", { id: "no-answer", class: "wrong", role: "alert" });
      said.textContent = (error instanceof Declined && error.message)
        || "The service does not answer. Try again in a moment.";
      button.parentElement.append(said);
    }
  });
}

function improve(main) {
  improveFiles(main);
  improveForm(main);
}

improve(document.querySelector("main"));
focusFirst(document.querySelector("main"));
watch();
