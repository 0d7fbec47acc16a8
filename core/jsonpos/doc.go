// Package jsonpos decodes JSON that people write, and says where it is wrong:
// file, line, column, what was expected, and the key that was probably meant.
//
// It is stricter than encoding/json: unknown and repeated keys, keys in another
// case, null where a value is needed, invalid UTF-8 and anything after the
// first value are errors. Nothing of a wrong document reaches the Go value.
//
// Lines and columns count from 1, columns in characters; a byte order mark is
// skipped and not counted, and CRLF ends a line like LF.
package jsonpos
