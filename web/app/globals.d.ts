/** Style sheets are imported for their effect. The bundler collects them into one sheet. */
declare module '*.css' {}
