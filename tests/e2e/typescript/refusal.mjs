// What a call is refused with: its code and its sentence.
export const refusal = async (call) => {
  try {
    return { answered: await call };
  } catch (error) {
    return [error.code ?? null, error.rawMessage ?? error.message];
  }
};
