// The certified OpenID provider of npm, with one client and its own pages for sign-in and consent.
import Provider from "oidc-provider";

const { ISSUER, PORT, DESK } = process.env;
const people = {
  carla: { preferred_username: "Carla.Bruns", groups: ["desk-admins"], zoneinfo: "Europe/Berlin" },
  dora: { preferred_username: "dora", groups: ["visitors"] },
};

const provider = new Provider(ISSUER, {
  clients: [
    {
      client_id: "sayso",
      client_secret: "a secret of the client",
      redirect_uris: [`${DESK}/sign-in/company/callback`],
      post_logout_redirect_uris: [`${DESK}/sign-in`],
      backchannel_logout_uri: `${DESK}/sign-in/company/logout`,
      backchannel_logout_session_required: true,
    },
  ],
  claims: { openid: ["sub"], profile: ["preferred_username", "zoneinfo"], groups: ["groups"] },
  scopes: ["openid", "groups"],
  // The desk is on this machine, which the provider's own guard refuses.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  features: { backchannelLogout: { enabled: true } },
  cookies: { keys: ["a key of the cookies"] },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
});

provider.listen(Number(PORT), "127.0.0.1", () => console.log("ready"));
