// Package oauth signs in to MCP servers over HTTP.
//
// A [Transport] is an [http.RoundTripper] that wraps another. It sends the first
// request unchanged, discovers the authorization server from the response, signs
// the user in with the browser, and adds the token to all further requests. It
// refreshes expired tokens, and requests more scopes if the server demands them.
// Non-interactively, a server that requires signing in is a [*SignInError].
//
// It implements the authorization part of the MCP specification (2025-11-25 and
// 2026-07-28, with fallbacks for servers of 2025-03-26), and with it RFC 9728 and
// RFC 8414 (discovery), RFC 7591 (dynamic registration), client ID metadata
// documents, RFC 7636 (PKCE, S256 only), RFC 8707 (resource indicators), RFC 9207
// (issuer identification) and RFC 8252 (loopback redirect).
//
// Only the server's URL, which the user configured, is trusted. All other URLs
// come from the network: they must be https (or loopback, if the server is), must
// not lead from a public server into a private network, and their responses are
// limited in size. Client secrets and tokens are only sent to the issuer that
// issued them, and tokens to the server's origin. Errors and logs contain none.
package oauth
