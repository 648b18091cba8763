// Files of the composer: uploaded as they are chosen, shown as chips, within the limits that the gate names.

import { ApiError, request } from "./api.js";
import { iconButton } from "./controls.js";
import { h } from "./dom.js";
import { t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { fileName, fileSize, plainName } from "./names.js";
import { session } from "./session.js";
import { explain } from "./states.js";

/** What the file dialog offers; the server decides by content. */
export const ACCEPT =
  "image/png,image/jpeg,image/gif,image/webp,text/*,.md,.txt,.csv,.json,.log,.yaml,.yml,.toml,.py,.js,.ts,.html,.css,.sql,.sh";

export class Attachments {
  #entries = new Set(); // {file, chip, upload}

  /** `onChange()` after each change; `onProblem(text)` when a file cannot be taken. */
  constructor({ onChange, onProblem }) {
    this.onChange = onChange;
    this.onProblem = onProblem;
    this.element = h("ul", { class: "files composer-files", "aria-label": t("attach.list"), hidden: true });
  }

  /** Uploaded files as `{id, name, mime, size}`. */
  get done() {
    return [...this.#entries].filter((entry) => entry.file.id).map((entry) => entry.file);
  }

  get busy() {
    return [...this.#entries].some((entry) => !entry.file.id);
  }

  get count() {
    return this.#entries.size;
  }

  /** Shows files that are on the server already, as from a draft. */
  restore(files) {
    for (const file of files) this.#show({ file });
    this.#changed();
  }

  clear() {
    for (const entry of this.#entries) entry.upload?.abort();
    this.#entries.clear();
    this.element.replaceChildren();
    this.#changed();
  }

  /** Takes chosen, dropped or pasted files. */
  add(files) {
    const { attachments_max: most, attachment_bytes: largest } = session.me.limits;
    for (const file of files) {
      if (this.#entries.size >= most) {
        this.onProblem(tn("attach.tooMany", most));
        return;
      }
      if (file.size > largest) this.onProblem(t("attach.tooLarge", { name: plainName(file.name), size: fileSize(largest) }));
      else this.#upload(file);
    }
  }

  async #upload(file) {
    const entry = { file: { name: file.name, mime: file.type, size: file.size }, upload: new AbortController() };
    this.#show(entry);
    if (file.type.startsWith("image/") && session.me.model?.sees_images === false) this.onProblem(t("attach.blind"));
    this.#changed();
    const form = new FormData();
    form.append("file", file, file.name);
    try {
      entry.file = await request("POST", "/api/attachments", form, { signal: entry.upload.signal });
      this.#refresh(entry);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#remove(entry);
      const reason =
        error instanceof ApiError && error.status === 413
          ? t("attach.tooLarge", { name: plainName(file.name), size: fileSize(session.me.limits.attachment_bytes) })
          : explain(error);
      this.onProblem(reason);
    }
    this.#changed();
  }

  #show(entry) {
    this.#entries.add(entry);
    entry.chip = h("li", {});
    this.element.append(entry.chip);
    this.#refresh(entry);
  }

  #refresh(entry) {
    const { file } = entry;
    const state = file.id ? fileSize(file.size) : t("attach.uploading");
    entry.chip.replaceChildren(
      h(
        "span",
        { class: file.id ? "chip" : "chip is-busy" },
        icon("file"),
        fileName(file.name),
        h("span", { class: "dim" }, state),
        iconButton("close", t("attach.remove", { name: plainName(file.name) }), () => {
          this.#remove(entry);
          this.#changed();
        }),
      ),
    );
  }

  #remove(entry) {
    entry.upload?.abort();
    this.#entries.delete(entry);
    entry.chip.remove();
  }

  #changed() {
    this.element.hidden = !this.#entries.size;
    this.onChange();
  }
}
