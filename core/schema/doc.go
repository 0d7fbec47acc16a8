// Package schema infers JSON Schemas of tool arguments from Go structs and
// validates arguments against them. It is a thin layer over
// github.com/google/jsonschema-go, with errors that point into the arguments.
package schema
