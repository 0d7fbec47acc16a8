// Package oauth signs in to MCP servers that are reached over HTTP.
//
// A [Transport] is an [http.RoundTripper] around the one that reaches the
// server. It sends the first request as it is, learns from the server's answer
// who issues tokens for it, brings a person through the sign-in in the browser
// where one is there, and adds the token to each further request; an expired
// one is renewed, and more is asked for when the server says that a token does
// not suffice. Without a person, a server that wants a sign-in is a
// [*SignInError].
//
// It follows the authorisation part of the MCP specification (2025-11-25 and
// 2026-07-28, with what 2025-03-26 did where servers are of that time) and with
// it RFC 9728 and RFC 8414 (discovery), RFC 7591 (dynamic registration), client
// ID metadata documents, RFC 7636 (PKCE, S256 only), RFC 8707 (the resource that
// a token is for), RFC 9207 (the issuer in the answer) and RFC 8252 (the
// redirect to a port of this machine).
//
// What is trusted: the address of the server, which the person gave. All other
// addresses come from the network. They must be https (or on this machine if
// the server is, too), none may lead from a public server into a private
// network, and their answers are bounded in size. Client secrets and tokens
// belong to the issuer that gave them and are shown to no other; tokens go to
// the server's own origin only. None of them is in an error or a log.
package oauth
