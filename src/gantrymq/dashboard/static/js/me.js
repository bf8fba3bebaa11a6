// Who is logged in here, and what they may do. The server decides; this only hides what it refuses.

import { get, setCsrf } from "./api.js";

const ROLES = ["viewer", "operator", "admin"];

export const me = {
  user: null, role: null, login: true, readOnly: false, version: "",
  may(role) {
    return Boolean(this.user) && ROLES.indexOf(this.role) >= ROLES.indexOf(role);
  },
  mayChange(role) {
    return !this.readOnly && this.may(role);
  },
};

export async function loadMe() {
  const told = await get("/api/me");
  Object.assign(me, told);
  setCsrf(told.csrf);
}
