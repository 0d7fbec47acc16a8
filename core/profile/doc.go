// Package profile adapts a session to a family of models: each profile is some
// data and a base prompt. The same input gives the same prompt, byte for byte,
// so that the provider's prompt cache hits.
package profile
