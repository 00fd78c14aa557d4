/** The text of docs/api.md, made from the declarations of the package. */
export function apiPage(): string
