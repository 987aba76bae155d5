/** Style sheets are imported for their effect only; the bundler collects them into the page's one sheet. */
declare module '*.css' {}
