// Package schema infers JSON Schemas of tool arguments from Go structs and
// validates arguments against them. It is a thin layer over
// github.com/google/jsonschema-go, with errors that name the invalid argument.
package schema
