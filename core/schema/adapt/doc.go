// Package adapt rewrites the JSON Schemas of tools into the forms that services
// accept. Tools come from everywhere: their schemas use any draft and any keyword,
// and one that a service rejects fails every request of the session.
//
// What a service accepts is listed in one table ([Dialect]), with the source of
// each rule. A schema that meets the rules is not changed at all. From others as
// little as possible is taken, and what it said goes to the description.
package adapt
