// Package sse reads server-sent events as the [WHATWG standard] defines them:
// lines ended by CR, LF or CRLF, a byte order mark at the start, comments, and
// the fields event, data, id and retry.
//
// [WHATWG standard]: https://html.spec.whatwg.org/multipage/server-sent-events.html
package sse
