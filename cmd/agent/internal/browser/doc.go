// Package browser drives a headless Chromium over its DevTools pipe, for tests of web
// pages and for the pictures in the docs. No program links it.
package browser
