// The code and the message of the error of a refused call.
export const refusal = async (call) => {
  try {
    return { answered: await call };
  } catch (error) {
    return [error.code ?? null, error.rawMessage ?? error.message];
  }
};
