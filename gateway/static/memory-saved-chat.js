// From a talk straight to its memories: the messages are picked in a dialog over the chat (SM-58).

import { askFromChat } from "./memory-saved-add.js";
import { SavedApi } from "./memory-saved-api.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";

/** Saves out of `chat` into the list of the person with the character that answers there. */
export async function rememberFromChat(chat) {
  const api = new SavedApi();
  try {
    const data = await api.lists();
    const list = data.lists.find((each) => each.list === "character" && each.character === chat.character) ?? data.lists[0];
    const pane = { api, data, list, limits: data.limits, put() {}, onChanged() {} };
    await askFromChat(pane, chat.id);
  } catch (error) {
    toast(explain(error), { tone: "warn" });
  }
}
