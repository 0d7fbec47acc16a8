// Package page shows sessions as web pages: one session in a self-contained file
// ([Export]), or all of them from a server on this machine ([Server]), live while
// they run. [Code] shows the graph of code in the same way.
//
// A page is plain HTML with a little script. What a session contains was written by
// models, tools and other people: it is escaped, its Markdown is rendered without
// raw HTML, images and unusual links, and the page's content security policy allows
// nothing but the page's own style and script.
package page
