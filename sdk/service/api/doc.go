// Package api is the HTTP API of a service: sessions are created, get commands, are
// listed and followed. It is described by an OpenAPI document, /v1/openapi.json, which
// the tests compare with every route and every error.
//
// Every request but those for that document, /healthz and /readyz needs a token, as
// Authorization: Bearer TOKEN. A token belongs to a tenant, whose sessions are all that
// it reaches, and has scopes. Quotas bound a tenant: they are checked before input is
// taken, so that what is running then may exceed them.
package api
