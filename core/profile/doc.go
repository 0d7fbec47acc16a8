// Package profile fits a session to a family of models: each profile is data
// and a base prompt. A prompt is the same to the byte for the same input, so
// that a provider's prompt cache hits.
package profile
