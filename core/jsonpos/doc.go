// Package jsonpos decodes hand-written JSON and reports where it is invalid:
// file, line, column, what was expected, and the key that was probably meant.
//
// It is stricter than encoding/json: unknown and repeated keys, keys in another
// case, null where a value is needed, invalid UTF-8 and anything after the
// first value are errors. An invalid document does not change the Go value.
//
// Lines and columns count from 1, columns in characters; a byte order mark is
// skipped and not counted, and CRLF ends a line like LF.
package jsonpos
