// Words that were typed into a file and not saved yet. They outlive a look at another page, not the tab, and no disk ever sees them.

const drafts = new Map();
const key = (scope, path) => `${scope}\n${path}`;

/** `{content, basedOn, base}` of a file (the hash and the text that it began from), or undefined. */
export const draftOf = (scope, path) => drafts.get(key(scope, path));

export function keepDraft(scope, path, draft) {
  drafts.set(key(scope, path), draft);
}

export function dropDraft(scope, path) {
  drafts.delete(key(scope, path));
}

/** After signing out nothing of anybody's is left. */
export function forgetDrafts() {
  drafts.clear();
}

addEventListener("beforeunload", (event) => {
  if (drafts.size) event.preventDefault();
});
