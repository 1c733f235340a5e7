// Styles are taken by the build; they have no exports.
declare module '*.css';
